/** Loads a file and everything it includes. Every file is looked at, so that all that is wrong is known at once. */
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { codeFrame } from './code-frame.ts'
import { definedBefore } from './defined-before.ts'
import { locateAll, placeText, spanAt } from './locate.ts'
import type { Found, Mistake } from './mistake.ts'
import { LARGEST_BYTES, readStamped, type StampedFile } from './stamp.ts'
import { ParseError, parseTomlFile, type TomlFile } from './toml-file.ts'
import { findExcess } from './toml-limits.ts'

/** A file, or text with a name for its mistakes; `include` in a text is relative to the current folder, and stays in it. */
export type ConfigurationSource =
  | {
      readonly file: string
      /** Told of every file that was looked at, readable or not: what to watch, and what it held when it was read. */
      readonly onRead?: (path: string, stamp: string) => void
    }
  | { readonly text: string; readonly name: string }

export interface LoadedFiles {
  /** The first one first. */
  readonly files: readonly TomlFile[]
  readonly mistakes: readonly Mistake[]
}

interface Loading {
  /** Absolute. Includes of every file stay inside. */
  readonly folder: string
  readonly files: TomlFile[]
  readonly mistakes: Mistake[]
  /** Absolute paths. */
  readonly seen: Set<string>
  readonly onRead: (path: string, stamp: string) => void
  bytes: number
}

export async function loadFiles(source: ConfigurationSource): Promise<LoadedFiles> {
  const onRead = ('file' in source && source.onRead) || (() => {})
  const folder = 'file' in source ? dirname(resolve(source.file)) : process.cwd()
  const loading: Loading = { folder, files: [], mistakes: [], seen: new Set(), onRead, bytes: 0 }
  if ('text' in source) await addText(loading, source.text, source.name, [])
  else {
    const text = await read(loading, resolve(source.file))
    if ('problem' in text) loading.mistakes.push({ where: source.file, path: '(file)', message: text.problem })
    else await addText(loading, text.content, source.file, [resolve(source.file)])
  }
  return loading
}

/** `chain` is the way here, this file last, as absolute paths. */
async function addText(loading: Loading, text: string, name: string, chain: readonly string[]): Promise<void> {
  const file = parse(loading, text, name)
  if (file === undefined) return
  loading.files.push(file)
  for (const [at, include] of includesOf(loading, file).entries()) {
    const shown = join(dirname(name), include)
    const path = resolve(shown)
    const message = refusal(loading, include, path, chain)
    const text = message === undefined ? await readInside(loading, path) : { problem: message }
    if ('problem' in text) note(loading, file, { path: ['include', at], at: 'value', message: text.problem })
    else await addText(loading, text.content, shown, [...chain, path])
  }
}

function includesOf(loading: Loading, file: TomlFile): string[] {
  const { include = [] } = file.data
  if (Array.isArray(include) && include.every((one) => typeof one === 'string' && one !== '')) return include
  note(loading, file, { path: ['include'], at: 'value', message: 'must be a list of files, like ["mail.toml"].' })
  return []
}

function refusal(
  { seen, folder }: Loading,
  include: string,
  path: string,
  chain: readonly string[],
): string | undefined {
  if (isAbsolute(include))
    return 'is an absolute path. Name a file below the folder of the configuration, relative to this one.'
  if (!isInside(folder, path)) return LEADS_OUT
  if (chain.includes(path)) return 'leads back to a file that includes this one. Remove one of the two.'
  return seen.has(path) ? 'is included a second time. Remove one of the two.' : undefined
}

const LEADS_OUT =
  'leads out of the folder of the configuration, so nothing of it was read. Move the file into the folder.'

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** Links count as the files that they lead to, and the file that was judged is the one that is read. */
async function readInside(loading: Loading, path: string): Promise<Text> {
  const real = await realpath(path).catch(() => path)
  const folder = await realpath(loading.folder).catch(() => loading.folder)
  if (real === path || isInside(folder, real)) return read(loading, path, real, (opened) => isInside(folder, opened))
  loading.onRead(path, (await readStamped(path)).stamp)
  return { problem: LEADS_OUT }
}

type Text = { readonly content: string } | { readonly problem: string }

async function read(
  loading: Loading,
  path: string,
  real = path,
  isAllowed?: (opened: string) => boolean,
): Promise<Text> {
  const file = await readStamped(real, isAllowed)
  loading.onRead(path, file.stamp)
  if ('refused' in file) return { problem: problemOf(file.refused) }
  loading.bytes += file.content.length
  // All files together.
  if (loading.bytes > LARGEST_BYTES) return { problem: problemOf('too large') }
  loading.seen.add(path)
  return { content: file.content.toString('utf8') }
}

function problemOf(refused: Extract<StampedFile, { refused: unknown }>['refused']): string {
  if (refused === 'not allowed') return LEADS_OUT
  if (refused === 'not a file') return 'is not a file. Name the files one by one.'
  if (refused === 'too large') return 'makes the configuration larger than 4 MB, which is refused.'
  return refused.code === 'ENOENT' ? 'There is no such file. Correct the path.' : `cannot be read (${refused.code}).`
}

/** The parser stops at the first thing that is not TOML, so of each file that one is reported alone. */
function parse({ mistakes }: Loading, text: string, name: string): TomlFile | undefined {
  const excess = findExcess(text)
  if (excess !== undefined) {
    const span = spanAt(text, excess.at)
    mistakes.push({ where: placeText(name, span), path: '(TOML)', message: excess.message })
    return undefined
  }
  try {
    return parseTomlFile(text, name)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const span = { line: error.lineNumber, column: error.column, length: 1 }
    const before = definedBefore(text, name, error)
    mistakes.push({
      where: placeText(name, span),
      path: '(TOML)',
      message: `${error.message}.${before === undefined ? '' : ` It is also at ${before}.`}`,
      frame: codeFrame(text.split(/\r?\n/)[span.line - 1] ?? '', span, 'no values'),
    })
    return undefined
  }
}

function note({ mistakes }: Loading, file: TomlFile, found: Found): void {
  mistakes.push(...locateAll([found], file.places, file))
}
