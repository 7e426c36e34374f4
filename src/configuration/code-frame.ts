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
 * `whole line` shows the line with its secrets masked; `up to the mark` hides what follows, which may be the value of an
 * unknown key; `mark only` hides everything around it too; `no values` is for a line that
 * nobody could parse, so that nobody knows what it holds.
 */
export type Shown = 'whole line' | 'up to the mark' | 'mark only' | 'no values'

export function codeFrame(line: string, { line: number, column, length }: Span, shown: Shown): string {
  const before = line.slice(0, column).replace(/[^\t]/g, ' ')
  const margin = ' '.repeat(String(number).length)
  const mark = '^'.repeat(Math.max(1, length))
  const content = show(line, column, column + length, hasHeaders(line) && shown !== 'no values' ? 'mark only' : shown)
  return [`    ${number} | ${content}`.trimEnd(), `    ${margin} | ${before}${mark}`].join('\n')
}

function show(line: string, start: number, end: number, shown: Shown): string {
  if (shown === 'whole line') return withoutSecrets(line)
  if (shown === 'no values') return line.includes('=') ? `${line.slice(0, line.indexOf('=') + 1)} …` : line
  const rest = end < line.trimEnd().length ? ' …' : ''
  if (shown === 'up to the mark') return `${withoutSecrets(line.slice(0, end))}${rest}`
  return `${line.slice(0, start).replace(/[^\t]/g, ' ')}${line.slice(start, end)}${rest}`
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
