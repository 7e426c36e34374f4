/** What a file holds, in a word that is another one when it holds something else, or is not there at all. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises'

/** By absolute path. */
export type FileStamps = ReadonlyMap<string, string>

export type StampedFile = { readonly stamp: string } & (
  | { readonly content: Buffer }
  /** `code`: the system's word for what is wrong. */
  | { readonly refused: 'not a file' | 'too large' | 'not allowed' | { readonly code: string } }
)

/** Of a file without a single byte: what a file is that somebody begins to write, or could not. */
export const EMPTY = 'empty'

/** A thousand observers are a quarter of a megabyte. */
export const LARGEST_BYTES = 4 * 1024 * 1024

/**
 * The word is made of the content, not of times: a file that is written twice within one tick of the clock is another
 * one, and one that was only touched is not. The size is asked first: a mistaken path may lead to gigabytes.
 *
 * `isAllowed` judges where the file is that was opened, links resolved: a path judged before may lead elsewhere by then.
 */
export async function readStamped(path: string, isAllowed?: (opened: string) => boolean): Promise<StampedFile> {
  let file: FileHandle | undefined
  try {
    const found = await stat(path)
    if (!found.isFile()) return { stamp: stampOf(found), refused: 'not a file' }
    file = await open(path, READ)
    const facts = await file.stat()
    const stamp = stampOf(facts)
    if (!facts.isFile()) return { stamp, refused: 'not a file' }
    if (facts.size > LARGEST_BYTES) return { stamp, refused: 'too large' }
    if (isAllowed !== undefined && !isAllowed(await placeOf(file, path))) return { stamp, refused: 'not allowed' }
    const content = await file.readFile()
    return { stamp: content.length === 0 ? EMPTY : createHash('sha256').update(content).digest('hex'), content }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return { stamp: code, refused: { code } }
  } finally {
    await file?.close().catch(() => {})
  }
}

/** A pipe that takes the place of a file is opened without waiting for a writer. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

function stampOf({ ino, size, mtimeMs }: { ino: number; size: number; mtimeMs: number }): string {
  return `${ino} ${size} ${mtimeMs}`
}

/** Linux tells it of the open file; elsewhere the path is resolved once more. */
async function placeOf({ fd }: FileHandle, path: string): Promise<string> {
  return readlink(`/proc/self/fd/${fd}`).catch(() => realpath(path))
}
