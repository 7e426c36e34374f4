/**
 * Writes documents as events come, many in one statement: while some are under way, what comes meanwhile waits for the
 * next. Of two that write the same document the newer position wins, as between two processes.
 */
import { classify, type Queryable } from '../postgres/index.ts'
import { type DocumentWrite, keyOf, newestOf, type WriteOutcome } from './document.ts'
import { writeInHalves } from './halves.ts'
import { checkLanguage } from './language.ts'
import { addIndexes, writeDocuments } from './statements.ts'

export interface DocumentWriter {
  /** Resolves when it is committed. Rejects with what the database said; then nothing of it was written. */
  write(write: DocumentWrite): Promise<WriteOutcome>
  /** Throws BAD_OPTION for a text search configuration that the database does not have. */
  checkLanguage(language: string): Promise<void>
}

interface Waiting extends DocumentWrite {
  readonly resolve: (outcome: WriteOutcome) => void
  readonly reject: (error: unknown) => void
}

const MOST_AT_ONCE = 500
const MOST_CHARACTERS = 4_000_000
/** To make words of text keeps a core of the server busy. Measured on two cores: 0.5 of bare upserts with one, 0.7 with two. */
const MOST_WRITERS = 2

export function createDocumentWriter(db: Queryable): DocumentWriter {
  let waiting: Waiting[] = []
  let writers = 0

  async function writeAll(): Promise<void> {
    writers++
    // One turn of the event loop: what comes together is written together.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const size = sizeOf(waiting)
      const batch = waiting.slice(0, size)
      waiting = waiting.slice(size)
      await settle(batch)
    }
    writers--
  }

  async function settle(batch: readonly Waiting[]): Promise<void> {
    const newest = newestOf(batch)
    const writes = [...newest.values()]
    const settled = await writeInHalves(writes, writeKnown)
    const outcomes = new Map(writes.map((one, n) => [one, settled[n]!]))
    for (const one of batch) {
      const kept = newest.get(keyOf(one))!
      const outcome = outcomes.get(kept)!
      // An older one is not to blame for what is wrong with the newer one: it has its turn with the next.
      if ('error' in outcome && one !== kept && classify(outcome.error) === 'permanent') waiting.push(one)
      else if ('error' in outcome) one.reject(outcome.error)
      else one.resolve(one === kept && outcome.written ? 'written' : 'superseded')
    }
  }

  /** An index is made with its first document. One that is removed at that very moment is made once more. */
  async function writeKnown(writes: readonly Waiting[]) {
    for (;;) {
      const rows = await writeDocuments(db, writes)
      const unknown = writes.filter((_, n) => !rows[n]!.known)
      if (unknown.length === 0) return rows
      await addIndexes(db, unknown)
    }
  }

  return {
    write: (write) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...write, resolve, reject })
        if (writers < MOST_WRITERS) void writeAll()
      }),
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
