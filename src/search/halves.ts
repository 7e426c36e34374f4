/**
 * A document that Postgres does not take must not fail the others it happened to travel with: a batch that fails for good
 * is written again in halves, until the one that is to blame is alone.
 */
import { classify } from '../postgres/index.ts'
import type { DocumentWrite } from './document.ts'
import type { WrittenRow } from './statements.ts'

export type Settled = WrittenRow | { readonly error: unknown }

/** What became of each write, in order. Errors that may pass are the error of all. */
export async function writeInHalves<Write extends DocumentWrite>(
  writes: readonly Write[],
  write: (some: readonly Write[]) => Promise<readonly WrittenRow[]>,
): Promise<Settled[]> {
  try {
    return [...(await write(writes))]
  } catch (error) {
    if (writes.length === 1 || classify(error) !== 'permanent') return writes.map(() => ({ error }))
    const middle = Math.ceil(writes.length / 2)
    const first = await writeInHalves(writes.slice(0, middle), write)
    return [...first, ...(await writeInHalves(writes.slice(middle), write))]
  }
}
