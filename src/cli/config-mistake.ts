/** Mistakes in the configuration, each with its place, what was expected and the line it is on. */
import { AftercommitError } from '../errors.ts'
import { isSecretName, maskSecrets } from '../runtime/index.ts'

export interface Mistake {
  /** `aftercommit.toml:3:8`, or the name of a variable or flag. */
  readonly where: string
  /** The setting as it is written in the file. */
  readonly path: string
  readonly message: string
  /** The line, with the place marked. */
  readonly frame?: string
}

/** What is wrong with which setting, before its place is known. */
export interface Found {
  readonly path: readonly PropertyKey[]
  readonly at: 'key' | 'value'
  readonly message: string
}

/** All mistakes at once: nobody likes to find them one by one. */
export class ConfigError extends AftercommitError {
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[]) {
    const count = mistakes.length === 1 ? 'one mistake' : `${mistakes.length} mistakes`
    super(
      'BAD_CONFIG',
      `The configuration has ${count}, so nothing was done.\n\n${mistakes.map(describe).join('\n\n')}\n`,
    )
    this.mistakes = mistakes
  }
}

function describe({ where, path, message, frame }: Mistake): string {
  return `${where}  ${path}\n  ${message}${frame === undefined ? '' : `\n\n${frame}`}`
}

export interface Span {
  /** From 1. */
  readonly line: number
  /** From 0. */
  readonly column: number
  readonly length: number
}

/** The line with the place marked. Of a line that may hold a secret only what stands before it is shown. */
export function codeFrame(
  text: string,
  { line, column, length }: Span,
  shown: 'whole line' | 'up to the mark',
): string {
  const source = text.split(/\r?\n/)[line - 1] ?? ''
  const isWhole = shown === 'whole line' || source.length <= column + length
  const content = isWhole ? withoutSecrets(source) : `${source.slice(0, column + length)} …`
  const before = source.slice(0, column).replace(/[^\t]/g, ' ')
  const margin = ' '.repeat(String(line).length)
  const mark = '^'.repeat(Math.max(1, length))
  return [`    ${line} | ${content}`.trimEnd(), `    ${margin} | ${before}${mark}`].join('\n')
}

function withoutSecrets(line: string): string {
  const [, start = '', name = ''] = /^(\s*["']?([\w.-]+)["']?\s*=)/.exec(line) ?? []
  return isSecretName(name) ? `${start} ***` : maskSecrets(line)
}
