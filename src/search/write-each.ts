/** Writes documents together so that each has a result of its own: a document that Postgres refuses fails no other. */
import { classify } from '../postgres/index.ts'
import { bisect } from '../runtime/index.ts'
import type { DocumentWrite } from './document.ts'
import type { WrittenRow } from './statements.ts'

export type Settled = WrittenRow | { readonly error: unknown }

/** The result of each write. An error that may pass is the error of all. */
export async function writeEach<Write extends DocumentWrite>(
  writes: readonly Write[],
  write: (some: readonly Write[]) => Promise<readonly WrittenRow[]>,
): Promise<Map<DocumentWrite, Settled>> {
  const settled = new Map<DocumentWrite, Settled>()
  await bisect(writes, async (some) => {
    try {
      const rows = await write(some)
      for (const [n, one] of some.entries()) settled.set(one, rows[n]!)
    } catch (error) {
      if (some.length > 1 && classify(error) === 'permanent') return { kind: 'halve', items: some }
      for (const one of some) settled.set(one, { error })
    }
    return { kind: 'done' }
  })
  return settled
}
