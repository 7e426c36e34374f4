/** Data goes to standard output, talk to standard error. Programs get JSON, people get text, colour only if wanted. */
import pc from 'picocolors'
import { printableLines } from '../printable.ts'
import { toJsonText } from './json.ts'
import type { GlobalOptions } from './program.ts'
import { type Column, renderTable } from './table.ts'

export type Colors = ReturnType<typeof pc.createColors>

export interface Output {
  readonly json: boolean
  readonly quiet: boolean
  readonly verbose: boolean
  /** Of standard output. */
  readonly colors: Colors
  /** Of standard error. */
  readonly talkColors: Colors
  /** Columns of the terminal; infinite when the output goes elsewhere. */
  readonly width: number
  data(text: string): void
  /** Remarks; nothing with --quiet. */
  talk(text: string): void
  /** What must be said even with --quiet. */
  warn(text: string): void
  /** One JSON document on one line or, in a terminal, laid out. */
  document(value: unknown): void
  /** One JSON document per line. */
  line(value: unknown): void
  table(columns: readonly Column[], rows: readonly (readonly string[])[], indent?: string): void
}

export interface Surroundings {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: NodeJS.ProcessEnv
}

interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export function createOutput(
  options: Pick<GlobalOptions, 'json' | 'quiet' | 'verbose' | 'color'>,
  { stdout, stderr, env }: Surroundings,
): Output {
  const { json = false, quiet = false, verbose = false } = options
  const colors = pc.createColors(wantsColor(stdout, env, options.color))
  const talkColors = pc.createColors(wantsColor(stderr, env, options.color))
  const data = (text: string) => void stdout.write(`${safe(text, colors)}\n`)
  const warn = (text: string) => void stderr.write(`${safe(text, talkColors)}\n`)
  const width = stdout.isTTY || env.COLUMNS ? Number(env.COLUMNS) || stdout.columns || 80 : Number.POSITIVE_INFINITY
  return {
    json,
    quiet,
    verbose,
    colors,
    talkColors,
    width,
    data,
    talk: (text) => (quiet ? undefined : warn(text)),
    warn,
    document: (value) => data(toJsonText(value, { layOut: stdout.isTTY === true })),
    line: (value) => data(toJsonText(value)),
    table: (columns, rows, indent = '') => {
      for (const line of renderTable(columns, rows, { width: width - indent.length, colors })) data(indent + line)
    },
  }
}

/** Values may hold anything. Where there is colour, the sequences that set it stay. */
function safe(text: string, { isColorSupported }: Colors): string {
  if (!isColorSupported) return printableLines(text)
  return text
    .split(COLOR)
    .map((part, at) => (at % 2 === 1 ? part : printableLines(part)))
    .join('')
}

/** Bold, dim and the colours of text, begun or ended. The group keeps them when a text is split. */
const COLOR = /(\u001b\[(?:0|1|2|22|3[0-79]|9[0-7])m)/

/** What was asked for on the command line, then NO_COLOR, then FORCE_COLOR, then whether anybody would see it. */
export function wantsColor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv, asked: boolean): boolean {
  if (!asked || env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stream.isTTY === true && env.TERM !== 'dumb'
}
