/** What people do with dead letters: look, try again, give up, take away. Every change says who and why. */
import { AftercommitError } from '../errors.ts'
import { toWire } from '../events/index.ts'
import { type Database, recordAudit } from '../postgres/index.ts'
import type { DeadLetter } from './letter.ts'
import { markLetters } from './redrive.ts'
import { countLetters, type LetterCause, type LetterFilter, selectCauses, selectLetters } from './statements.ts'

export interface LetterAction {
  /** Who does it; for the record. */
  readonly who?: string | undefined
  readonly reason?: string | undefined
}

export interface DeadLetters {
  /** Newest first, 100 unless told. `before` is the id of the last one of the page before. */
  list(filter?: LetterFilter & { limit?: number }): Promise<DeadLetter[]>
  /** Exact, or at most `atMost`: a large count costs seconds. */
  count(filter?: LetterFilter & { atMost?: number }): Promise<number>
  /** Why the newest 10,000 dead letters died, the most frequent cause first. Default: 50 causes. */
  causes(options?: { limit?: number }): Promise<LetterCause[]>
  show(id: bigint): Promise<DeadLetter | undefined>
  /** Asks the owner to run dead letters again, then what waits behind them, in order. Answers how many were marked. */
  redrive(which: bigint | readonly bigint[] | LetterFilter, action?: LetterAction): Promise<number>
  /** Gives them up: the owner goes on with what waits behind. Answers how many were marked. */
  discard(which: bigint | readonly bigint[] | LetterFilter, action?: LetterAction): Promise<number>
  /** Every letter that matches, oldest page last, as plain JSON objects with the whole event. */
  export(filter?: LetterFilter): AsyncIterableIterator<Record<string, unknown>>
}

/** `nudge` tells owners, wherever they run, that something was marked. */
export function createDeadLetters(db: Database, nudge: (owners: readonly string[]) => Promise<void>): DeadLetters {
  async function mark(
    which: bigint | readonly bigint[] | LetterFilter,
    status: 'redriving' | 'discarded',
    { who = 'unknown', reason }: LetterAction,
  ): Promise<number> {
    const marked = await db.transaction(async (tx) => {
      const changed = await markLetters(tx, toFilter(which), { status, who, reason: reason ?? null })
      if (changed.ids.length === 0) return changed
      await recordAudit(tx, {
        who,
        what: status === 'redriving' ? 'letter.redrive' : 'letter.discard',
        target: changed.owners.join(', ').slice(0, 500),
        after: { count: changed.ids.length, first: changed.ids[0] },
        ...(reason === undefined ? {} : { reason }),
      })
      return changed
    }, READ_COMMITTED)
    if (marked.ids.length > 0) await nudge(marked.owners)
    return marked.ids.length
  }

  return {
    list: async ({ limit = 100, ...filter } = {}) => selectLetters(db, filter, checkLimit(limit)),
    count: ({ atMost, ...filter } = {}) => countLetters(db, filter, atMost),
    causes: async ({ limit = 50 } = {}) => selectCauses(db, checkLimit(limit)),
    show: async (id) => (await selectLetters(db, { ids: [id] }, 1))[0],
    redrive: (which, action = {}) => mark(which, 'redriving', action),
    discard: (which, action = {}) => mark(which, 'discarded', action),
    async *export(filter = {}) {
      for (let before = filter.before; ; ) {
        const page = await selectLetters(db, { ...filter, before }, 500)
        for (const letter of page) yield toExport(letter)
        if (page.length < 500) return
        before = page.at(-1)!.id
      }
    },
  }
}

function toFilter(which: bigint | readonly bigint[] | LetterFilter): LetterFilter {
  if (typeof which === 'bigint') return { ids: [which] }
  return Array.isArray(which) ? { ids: which } : (which as LetterFilter)
}

function toExport(letter: DeadLetter): Record<string, unknown> {
  return {
    id: String(letter.id),
    kind: letter.kind,
    owner: letter.owner,
    key: letter.key,
    status: letter.status,
    attempts: letter.attempts,
    first_attempt_at: letter.firstAttemptAt.toISOString(),
    last_attempt_at: letter.lastAttemptAt.toISOString(),
    error: letter.error,
    waiting: letter.waiting,
    who: letter.who,
    reason: letter.reason,
    event: toWire(letter.event),
  }
}

function checkLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000) return limit
  throw new AftercommitError(
    'BAD_OPTION',
    'limit must be a whole number from 1 to 1000. Use `before` for the next page.',
  )
}

const READ_COMMITTED = { isolation: 'read committed' } as const
