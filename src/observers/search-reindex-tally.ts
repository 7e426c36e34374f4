/** What a reindex did, counted, with the first of what went wrong. Memory is bounded, however long it takes. */
import type { AnyEvent } from '../log/index.ts'

export interface ReindexReport {
  /** No condition, no template, no event and no write failed. */
  readonly ok: boolean
  /** Null for all of history. */
  readonly since: Date | null
  /** Events of types that some rule with a search action is about. */
  readonly events: number
  readonly indexes: readonly ReindexedIndex[]
  /** How many writes failed, or could not be made. */
  readonly failures: number
  /** The first of them. */
  readonly problems: readonly ReindexProblem[]
}

export interface ReindexedIndex {
  readonly index: string
  /** What history says, before newer events win over older ones. */
  readonly upserts: number
  readonly deletes: number
  /** Documents that were taken over as they are, because their events were not read. */
  readonly carried: number
  /** `written`: in place. `untouched`: no rule wrote to it, so what was there stays. */
  readonly outcome: 'replaced' | 'written' | 'untouched'
}

export interface ReindexProblem {
  readonly eventId: string
  readonly position: bigint
  readonly observer: string | null
  readonly code: string | null
  readonly message: string
}

export type Finished = Pick<ReindexedIndex, 'index' | 'carried' | 'outcome'>

export interface ReindexTally {
  /** How often each index was written to. */
  readonly written: ReadonlyMap<string, { readonly upserts: number; readonly deletes: number }>
  event(): void
  write(index: string, isDeletion: boolean): void
  problem(event: Pick<AnyEvent, 'id' | 'position'>, observer: string | null, error: unknown): void
  result(finished: readonly Finished[]): ReindexReport
}

const MOST_PROBLEMS = 10

export function createReindexTally(since: Date | undefined): ReindexTally {
  const written = new Map<string, { upserts: number; deletes: number }>()
  const problems: ReindexProblem[] = []
  let events = 0
  let failures = 0

  return {
    written,
    event: () => void events++,
    write(index, isDeletion) {
      const counts = written.get(index) ?? { upserts: 0, deletes: 0 }
      counts[isDeletion ? 'deletes' : 'upserts']++
      written.set(index, counts)
    },
    problem(event, observer, error) {
      failures++
      if (problems.length >= MOST_PROBLEMS) return
      const { message, code = null } = error as Error & { code?: string }
      problems.push({ eventId: event.id, position: event.position, observer, code, message })
    },
    result: (finished) => ({
      ok: failures === 0,
      since: since ?? null,
      events,
      indexes: finished
        .map((one) => ({ ...(written.get(one.index) ?? { upserts: 0, deletes: 0 }), ...one }))
        .sort((a, b) => (a.index < b.index ? -1 : 1)),
      failures,
      problems,
    }),
  }
}
