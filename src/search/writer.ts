/**
 * Writes documents as events come, many in one statement: while some are under way, what comes meanwhile waits for the
 * next. Of two that write the same document the newer position wins, as between two processes.
 */
import { classify, type Queryable } from '../postgres/index.ts'
import { createBatcher } from '../runtime/index.ts'
import { type DocumentWrite, keyOf, newestOf, type WriteOutcome } from './document.ts'
import { checkLanguage } from './language.ts'
import { addIndexes, writeDocuments } from './statements.ts'
import { writeEach } from './write-each.ts'

export interface DocumentWriter {
  /** Resolves when it is committed. Rejects with what the database said; then nothing of it was written. */
  write(write: DocumentWrite): Promise<WriteOutcome>
  /** Throws BAD_OPTION for a text search configuration that the database does not have. */
  checkLanguage(language: string): Promise<void>
}

/** `again`: only a newer write of the same document was attempted. */
type Outcome = WriteOutcome | { readonly error: unknown } | 'again'

const MOST_AT_ONCE = 500
const MOST_CHARACTERS = 4_000_000
/** To make words of text keeps a core of the server busy. Measured on two cores: 0.5 of bare upserts with one, 0.7 with two. */
const MOST_WRITERS = 2

export function createDocumentWriter(db: Queryable): DocumentWriter {
  const together = createBatcher<DocumentWrite, Outcome>({ write: writeBatch, take: sizeOf, writers: MOST_WRITERS })

  async function writeBatch(batch: readonly DocumentWrite[]): Promise<Outcome[]> {
    const newest = newestOf(batch)
    const settled = await writeEach([...newest.values()], writeKnown)
    return batch.map((one) => {
      const kept = newest.get(keyOf(one))!
      const outcome = settled.get(kept)!
      // The older write of a document is not to blame for a newer one: it is written with the next batch.
      if ('error' in outcome && one !== kept && classify(outcome.error) === 'permanent') return 'again'
      if ('error' in outcome) return outcome
      return one === kept && outcome.written ? 'written' : 'superseded'
    })
  }

  /** An index is made with its first document. One that is removed at that very moment is made once more. */
  async function writeKnown(writes: readonly DocumentWrite[]) {
    for (;;) {
      const rows = await writeDocuments(db, writes)
      const unknown = writes.filter((_, n) => !rows[n]!.known)
      if (unknown.length === 0) return rows
      await addIndexes(db, unknown)
    }
  }

  return {
    async write(write) {
      for (;;) {
        const outcome = await together({ ...write })
        if (typeof outcome === 'object') throw outcome.error
        if (outcome !== 'again') return outcome
      }
    },
    checkLanguage: (language) => checkLanguage(db, language),
  }
}

/** How many of them one statement takes; at least one. */
function sizeOf(waiting: readonly DocumentWrite[]): number {
  let characters = 0
  for (const [n, { json }] of waiting.entries()) {
    characters += json?.length ?? 0
    if (n > 0 && (n >= MOST_AT_ONCE || characters > MOST_CHARACTERS)) return n
  }
  return waiting.length
}
