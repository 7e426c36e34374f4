import { AftercommitError } from '../errors.ts'

export interface Mistake {
  readonly source: string
  /** Offsets into the source: the first character it is about, and the one after the last. */
  readonly start: number
  readonly end: number
  /** A sentence without its full stop. Names and kinds of values only: it may be logged, payloads may not. */
  readonly problem: string
  /** The nearest name, where the mistake is a name. */
  readonly suggestion?: string | undefined
}

/** A condition or expression that cannot be used, or that could not be evaluated for an event. */
export class ConditionError extends AftercommitError {
  readonly source: string
  readonly offset: number
  readonly end: number
  readonly problem: string
  readonly suggestion: string | undefined
  /** The same event would fail the same way: no further attempt helps. */
  readonly transient = false

  constructor(whatFollows: string, { source, start, end, problem, suggestion }: Mistake) {
    const hint = suggestion === undefined ? '' : ` Did you mean ${JSON.stringify(suggestion)}?`
    super('OB002', `${whatFollows}: ${problem}.${hint}\n\n${frame(source, start, end)}`)
    this.source = source
    this.offset = start
    this.end = end
    this.problem = problem
    this.suggestion = suggestion
  }
}

/** What the compiler throws; which word stands for the whole thing ("condition", "expression") is known further out. */
export class CompileMistake extends Error {
  readonly mistake: Mistake

  constructor(mistake: Mistake) {
    super(mistake.problem)
    this.mistake = mistake
  }
}

/** The line in question with carets below it. Of a long line only the surroundings are shown. */
function frame(source: string, start: number, end: number): string {
  const lineStart = source.lastIndexOf('\n', start - 1) + 1
  const lineEnd = source.indexOf('\n', start)
  const line = source.slice(lineStart, lineEnd < 0 ? source.length : lineEnd)
  const number = source.slice(0, lineStart).split('\n').length
  const column = start - lineStart
  const from = Math.max(0, column - 60)
  const shown = line.slice(from, from + 120).replaceAll('\t', ' ')
  const carets = Math.max(1, Math.min(end - start, shown.length - (column - from)))
  const gutter = `  ${number} | `
  return `${gutter}${shown}\n${' '.repeat(gutter.length + column - from)}${'^'.repeat(carets)}`
}
