/** A line of the file with a place marked, and nothing on it that should not be read over a shoulder. */
import { isSecretName, maskSecrets } from '../runtime/index.ts'

export interface Span {
  /** From 1. */
  readonly line: number
  /** From 0. */
  readonly column: number
  readonly length: number
}

/**
 * `whole line` shows the line with its secrets masked; `up to the mark` hides the rest, which may be the value of an
 * unknown key; `mark only` hides everything around the mark too; `no values` is for a line that the parser refused: it
 * may hold anything, so the header of a table and what stands before `=` are shown, and nothing else.
 */
export type Shown = 'whole line' | 'up to the mark' | 'mark only' | 'no values'

export function codeFrame(line: string, { line: number, column, length }: Span, shown: Shown): string {
  const margin = ' '.repeat(String(number).length)
  const content = show(line, column, column + length, hasHeaders(line) && shown !== 'no values' ? 'mark only' : shown)
  const start = column + Math.min(length, WIDTH) > WIDTH ? column - WIDTH / 4 : 0
  const seen = `${start > 0 ? '… ' : ''}${content.slice(start, start + WIDTH)}${content.length > start + WIDTH ? ' …' : ''}`
  const before = `${start > 0 ? '  ' : ''}${line.slice(start, column).replace(/[^\t]/g, ' ')}`
  const mark = '^'.repeat(Math.min(Math.max(1, length), WIDTH))
  return [`    ${number} | ${seen}`.trimEnd(), `    ${margin} | ${before}${mark}`].join('\n')
}

/** Of a longer line the part around the mark is shown. */
const WIDTH = 200

function show(line: string, start: number, end: number, shown: Shown): string {
  if (shown === 'whole line') return withoutSecrets(line)
  if (shown === 'no values') return withoutValue(line)
  const rest = end < line.trimEnd().length ? ' …' : ''
  if (shown === 'up to the mark') return `${withoutSecrets(line.slice(0, end))}${rest}`
  return `${line.slice(0, start).replace(/[^\t]/g, ' ')}${line.slice(start, end)}${rest}`
}

function withoutValue(line: string): string {
  const equals = line.indexOf('=')
  if (equals !== -1) return `${line.slice(0, equals + 1)} …`
  return /^\s*\[/.test(line) ? line : '…'
}

/** Any header may carry a token, whatever its name. */
function hasHeaders(line: string): boolean {
  return /\bheaders\b[^=]{0,200}=/.test(line)
}

/** Masks keep the width of what they hide, so that the mark below stays right. */
function withoutSecrets(line: string): string {
  const masked = line.replace(PAIR, (all, name: string, equals: string, value: string) =>
    isSecretName(name) ? `${name}${equals}${'***'.padEnd(value.length).slice(0, value.length)}` : all,
  )
  return maskSecrets(masked)
}

const PAIR = /([\w-]+)(["']?[ \t]*=[ \t]*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,}\]]+)/g
