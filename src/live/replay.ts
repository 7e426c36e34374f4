/**
 * What readers that catch up ask the database. They take turns, one question at a time: however many clients come back at
 * once, the tailer and the heartbeats of the process find a connection. A question that waits for its turn is shared by
 * all who ask it; one that is under way is not, because its answer may be older than the next reader asks for.
 *
 * Turns are fair by time and not by number: a reader whose pages take seconds waits for those whose pages take
 * milliseconds, until they have used as much. Each question has a start, which is what its reader has used so far, or the
 * start of the question that was served last where that is more; the lowest start is served next.
 */
import type { FilteredPage, ReadWindow, Tailer } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { Filter } from './filter.ts'
import type { LogFacts } from './place.ts'
import { selectFacts } from './statements.ts'

export interface Replay {
  /** `reader` is whose time it takes. */
  page(reader: object, after: bigint, limit: number, filter: Filter, window: ReadWindow): Promise<FilteredPage>
  facts(epoch: number): Promise<LogFacts>
}

export interface ReplayParts {
  readonly tailer: Pick<Tailer, 'readFiltered'>
  readonly database: Database
  readonly clock: Clock
}

interface Question {
  readonly start: number
  readonly readers: Set<object>
  readonly answer: Promise<unknown>
  ask(): Promise<void>
}

export function createReplay({ tailer, database, clock }: ReplayParts): Replay {
  const waiting = new Map<string, Question>()
  /** Up to where each reader has used its time. */
  const used = new WeakMap<object, number>()
  let served = 0
  let isAsking = false

  function inTurn<T>(key: string, reader: object | undefined, ask: () => Promise<T>): Promise<T> {
    const start = reader === undefined ? served : Math.max(served, used.get(reader) ?? 0)
    const same = waiting.get(key)
    if (same !== undefined) {
      if (reader !== undefined) same.readers.add(reader)
      if (start < same.start) waiting.set(key, { ...same, start })
      return same.answer as Promise<T>
    }
    let begin!: () => Promise<void>
    const answer = new Promise<T>((resolve, reject) => {
      begin = () => ask().then(resolve, reject)
    })
    waiting.set(key, { start, answer, readers: new Set(reader === undefined ? [] : [reader]), ask: begin })
    void askAll()
    return answer
  }

  async function askAll(): Promise<void> {
    if (isAsking) return
    isAsking = true
    // Questions that arrive in the same turn of the event loop go together.
    await Promise.resolve()
    for (let next = lowest(); next !== undefined; next = lowest()) {
      const [key, question] = next
      waiting.delete(key)
      served = question.start
      const began = clock.monotonic()
      await question.ask()
      const share = (clock.monotonic() - began) / Math.max(1, question.readers.size)
      for (const reader of question.readers) used.set(reader, Math.max(served, used.get(reader) ?? 0) + share)
    }
    isAsking = false
  }

  function lowest(): [string, Question] | undefined {
    let found: [string, Question] | undefined
    for (const entry of waiting) if (found === undefined || entry[1].start < found[1].start) found = entry
    return found
  }

  return {
    page: (reader, after, limit, { key, page }, window) =>
      inTurn(`${after} ${limit} ${window.positions} ${key}`, reader, () =>
        tailer.readFiltered(after, limit, { ...page, window }),
      ),
    facts: (epoch) => inTurn(String(epoch), undefined, () => selectFacts(database.control, epoch)),
  }
}
