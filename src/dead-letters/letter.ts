import type { AftercommitEvent } from '../events/index.ts'
import type { ErrorRecord } from './error-record.ts'

/** What ran out of tries. */
export type LetterKind = 'subscription' | 'action' | 'effect' | 'timer'

/** dead: waits for somebody. redriving: marked, its owner will run it. resolved and discarded: over. */
export type LetterStatus = 'dead' | 'redriving' | 'resolved' | 'discarded'

/** One event that ran out of tries for one owner. The event is a copy and outlives the log's retention. */
export interface DeadLetter {
  readonly id: bigint
  readonly kind: LetterKind
  /** The subscription, observer action or workflow it belongs to. */
  readonly owner: string
  /** Later events of this key wait behind it, where the owner parks. */
  readonly key: string
  readonly event: AftercommitEvent
  readonly error: ErrorRecord
  readonly attempts: number
  readonly firstAttemptAt: Date
  readonly lastAttemptAt: Date
  readonly status: LetterStatus
  /** How many events, or deliveries in order, wait behind it. */
  readonly waiting: number
  readonly who: string | null
  readonly reason: string | null
}

/** A letter about to be written. */
export interface NewLetter {
  readonly kind: LetterKind
  readonly owner: string
  readonly key: string
  readonly event: AftercommitEvent
  readonly error: ErrorRecord
  readonly attempts: number
  /** How long ago the first try was; the database's clock makes a time of it. */
  readonly sinceFirstMs: number
  readonly parks: boolean
}
