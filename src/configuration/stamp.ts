/** What a file holds, in a word that is another one when it holds something else, or is not there at all. */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'

/** By absolute path. */
export type FileStamps = ReadonlyMap<string, string>

export type StampedFile = { readonly stamp: string } & (
  | { readonly content: Buffer }
  /** `code`: the system's word for what is wrong. */
  | { readonly refused: 'not a file' | 'too large' | { readonly code: string } }
)

/** Of a file without a single byte: what a file is that somebody begins to write, or could not. */
export const EMPTY = 'empty'

/** A thousand observers are a quarter of a megabyte. */
export const LARGEST_BYTES = 4 * 1024 * 1024

/**
 * The word is made of the content, not of times: a file that is written twice within one tick of the clock is another
 * one, and one that was only touched is not. The size is asked first: a mistaken path may lead to gigabytes.
 */
export async function readStamped(path: string): Promise<StampedFile> {
  try {
    const facts = await stat(path)
    const stamp = `${facts.ino} ${facts.size} ${facts.mtimeMs}`
    if (!facts.isFile()) return { stamp, refused: 'not a file' }
    if (facts.size > LARGEST_BYTES) return { stamp, refused: 'too large' }
    const content = await readFile(path)
    return { stamp: content.length === 0 ? EMPTY : createHash('sha256').update(content).digest('hex'), content }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return { stamp: code, refused: { code } }
  }
}
