/**
 * What readers that catch up ask the database. They take turns, one question at a time: however many clients come back at
 * once, the tailer and the heartbeats of the process find a connection. A question that waits for its turn is shared by
 * all who ask it; one that is under way is not, because its answer may be older than whoever asks now.
 */
import type { FilteredPage, ReadWindow, Tailer } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Filter } from './filter.ts'
import type { LogFacts } from './place.ts'
import { selectFacts } from './statements.ts'

export interface Replay {
  page(after: bigint, limit: number, filter: Filter, window: ReadWindow): Promise<FilteredPage>
  facts(epoch: number): Promise<LogFacts>
}

export function createReplay({ tailer, database }: { tailer: Tailer; database: Database }): Replay {
  const queued = new Map<string, Promise<unknown>>()
  let turn: Promise<unknown> = Promise.resolve()

  function inTurn<T>(question: string, ask: () => Promise<T>): Promise<T> {
    const same = queued.get(question)
    if (same !== undefined) return same as Promise<T>
    const answer = turn.then(() => {
      queued.delete(question)
      return ask()
    })
    queued.set(question, answer)
    turn = answer.catch(() => {})
    return answer
  }

  return {
    page: (after, limit, { key, page }, window) =>
      inTurn(`${after} ${limit} ${window.positions} ${key}`, () =>
        tailer.readFiltered(after, limit, { ...page, window }),
      ),
    facts: (epoch) => inTurn(String(epoch), () => selectFacts(database.control, epoch)),
  }
}
