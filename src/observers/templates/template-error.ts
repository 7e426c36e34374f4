import { AftercommitError } from '../../errors.ts'
import { maskSecrets } from '../../runtime/index.ts'

/** Where a template came from and which place in it is meant. */
export interface Place {
  /** What the template is called in messages: the field it fills, such as `url` or `body.items[0]`. */
  readonly name: string
  readonly source: string
  /** Index in the source, from 0. */
  readonly offset: number
  readonly length?: number
}

/** What is wrong, what follows from it and what to do. */
export interface Trouble {
  readonly reason: string
  readonly advice: string
  readonly suggestion?: string
  readonly cause?: unknown
}

/**
 * A template that cannot be compiled, or that cannot be rendered for an event. It shows the template and never the data.
 * Trying again would end the same way.
 */
export class TemplateError extends AftercommitError {
  declare readonly code: 'OB003'
  readonly transient = false
  /** The field whose template it is. */
  readonly field: string
  /** Index in the source of the template, from 0. */
  readonly offset: number
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** What is wrong, without place and advice. */
  readonly reason: string
  /** The name that was probably meant. */
  readonly suggestion: string | undefined
  /** The line of the template with the place marked; empty when no text is to blame. */
  readonly frame: string

  constructor(place: Place, when: 'load' | 'render', { reason, advice, suggestion, cause }: Trouble) {
    const { line, column, text } = locate(place)
    const frame = place.source === '' ? '' : codeFrame(text, line, column, place.length ?? 1)
    const follows = when === 'load' ? 'the template is refused' : 'nothing was rendered'
    const meant = suggestion === undefined ? advice : `Did you mean "${suggestion}"?`
    const at = `${place.name}, line ${line}, column ${column}`
    const message = `${at}: ${reason}, so ${follows}. ${meant}`
    super('OB003', frame === '' ? message : `${message}\n\n${frame}`, cause === undefined ? {} : { cause })
    this.field = place.name
    this.offset = place.offset
    this.line = line
    this.column = column
    this.reason = reason
    this.suggestion = suggestion
    this.frame = frame
  }
}

/** A complaint of a part that does not know its place in the template; whoever knows it makes a `TemplateError` of it. */
export class Refusal extends AftercommitError {
  readonly reason: string
  readonly advice: string
  readonly suggestion: string | undefined

  constructor(reason: string, advice: string, suggestion?: string, cause?: unknown) {
    super('OB003', `${reason}. ${advice}`, cause === undefined ? {} : { cause })
    this.reason = reason
    this.advice = advice
    this.suggestion = suggestion
  }
}

/** Runs a part and gives its complaint a place. Errors that have a place already pass. */
export function at<Result>(place: Place, when: 'load' | 'render', part: () => Result): Result {
  try {
    return part()
  } catch (error) {
    throw placed(error, place, when)
  }
}

export function placed(error: unknown, place: Place, when: 'load' | 'render'): unknown {
  if (!(error instanceof Refusal)) return error
  const { reason, advice, suggestion, cause } = error
  return new TemplateError(place, when, { reason, advice, ...(suggestion === undefined ? {} : { suggestion }), cause })
}

function locate({ source, offset }: Place): { line: number; column: number; text: string } {
  const before = source.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  const end = source.indexOf('\n', offset)
  const text = source.slice(start, end === -1 ? source.length : end).replace(/\r$/, '')
  return { line: before.split('\n').length, column: offset - start + 1, text }
}

/** Literal text may hold a token, so everything around the marked place is masked; far away text is left out. */
function codeFrame(text: string, line: number, column: number, length: number): string {
  const from = Math.max(0, column - 1 - REACH)
  const to = Math.min(text.length, column - 1 + length + REACH)
  const before = (from > 0 ? '…' : '') + maskSecrets(text.slice(from, column - 1))
  const rest = maskSecrets(text.slice(column - 1, to)) + (to < text.length ? '…' : '')
  const mark = '^'.repeat(Math.max(1, Math.min(length, rest.length)))
  const margin = ' '.repeat(String(line).length)
  return [`    ${line} | ${before}${rest}`.trimEnd(), `    ${margin} | ${before.replace(/[^\t]/g, ' ')}${mark}`].join(
    '\n',
  )
}

const REACH = 60
