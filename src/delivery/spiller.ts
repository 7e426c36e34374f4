/** Makes rows of what cannot end now, many in one statement: while one is under way, what comes meanwhile waits for the next. */
import type { Queryable } from '../postgres/index.ts'
import { type Added, type AddedRow, addDeliveries } from './statements.ts'

export interface Spiller {
  /** Resolves when the row is committed. Rejects when the database does not take it: then nothing is kept. */
  spill(row: AddedRow): Promise<Added>
}

interface Waiting {
  readonly row: AddedRow
  readonly resolve: (added: Added) => void
  readonly reject: (error: unknown) => void
}

const MOST_AT_ONCE = 500

export function createSpiller(db: Queryable): Spiller {
  let waiting: Waiting[] = []
  let writing = false

  async function write(): Promise<void> {
    writing = true
    // One turn of the event loop: what fails together is written together.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MOST_AT_ONCE)
      waiting = waiting.slice(MOST_AT_ONCE)
      try {
        const added = await addDeliveries(
          db,
          batch.map(({ row }) => row),
        )
        batch.forEach(({ resolve }, n) => {
          resolve(added[n]!)
        })
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    writing = false
  }

  return {
    spill: (row) =>
      new Promise((resolve, reject) => {
        waiting.push({ row, resolve, reject })
        if (!writing) void write()
      }),
  }
}
