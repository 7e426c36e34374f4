import type { AftercommitEvent } from '../events/index.ts'
import type { Transaction } from '../postgres/index.ts'
import type { RetryPolicy } from '../runtime/index.ts'

/** What is delivered: the action of an observer, the effect or the timer of a workflow. Also the kind of its dead letter. */
export type DeliveryKind = 'action' | 'effect' | 'timer'

/** One thing to do, about to be added. */
export interface NewDelivery {
  readonly kind: DeliveryKind
  /** What a worker must have registered to do it. */
  readonly name: string
  /** Whose dead letter it would be. */
  readonly owner: string
  /** The event that asked for it. */
  readonly eventId?: string | undefined
  /** JSON; what the work is about. */
  readonly payload: unknown
  /** What order goes by. */
  readonly key?: string | undefined
  /** Waits for those before it with the same name and key, also while one of them is a dead letter. */
  readonly ordered?: boolean | undefined
  /** While one with this name and unique key waits, another is not added. */
  readonly uniqueKey?: string | undefined
  /** Where it goes, for limits that all processes share. */
  readonly destination?: string | undefined
  readonly tenant?: string | undefined
  /** Higher ones are claimed first: 1 for urgent work, -1 for what was caught up on. */
  readonly priority?: number | undefined
  /** By the database's clock. */
  readonly delayMs?: number | undefined
  readonly runAt?: Date | undefined
}

/** One thing to do, claimed. */
export interface Delivery {
  readonly id: bigint
  readonly kind: DeliveryKind
  readonly name: string
  readonly owner: string
  readonly key: string | null
  readonly destination: string
  readonly tenant: string
  readonly payload: unknown
  /** Made again from a dead letter: what followed its death has happened. */
  readonly redriven?: boolean
  /** Begun with the transaction that asked for it: nothing can have happened to it since. */
  readonly fresh?: boolean
  /** Counts from 1. */
  readonly attempt: number
  readonly createdAt: Date
}

export interface RunContext {
  /** Fires when its time is up, its claim is lost or it was cancelled: what is written afterwards changes nothing. */
  readonly signal: AbortSignal
  /** Completes it in a transaction of the work's own: what the work writes and the end of the delivery are one. */
  complete(tx: Transaction): Promise<void>
  /** For who deletes its row by a statement of his own: where it is, and by which token. Undefined where there is no row. */
  readonly claim?: { readonly segment: number; readonly id: bigint; readonly token: bigint } | undefined
  /** Its row was deleted so, and that is committed. */
  settled?(): void
  /** Called before the work throws an error that a statement of ours met, not a function of the user. */
  onFault?(error: unknown): void
}

/** What this process can do: one name of one kind. */
export interface Work {
  readonly kind: DeliveryKind
  readonly name: string
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  /** Where one name stands for several things to do: how this one is done. */
  of?(delivery: Delivery): Work
  /** Done when it returns; tried again by the policy when it throws; `RetryAfter`, `GiveUp` and `NotNow` say more. */
  run(delivery: Delivery, context: RunContext): unknown
  /** What an attempt that took longer than `timeoutMs` failed with; `TIMED_OUT` unless told. */
  toTimeout?(): Error
  /** What its dead letter shows. */
  toEvent(delivery: Delivery): AftercommitEvent
  /** What the dead letter says instead of the last error. */
  toLetterError?(error: unknown, attempt: number): unknown
  /** Given up without a dead letter: an ERROR line is all that is left. */
  readonly discards?: boolean | undefined
  /** Its unique key is for the next one as soon as it is dead: made again from its letter, it comes without. */
  readonly freesUniqueKey?: boolean | undefined
  /** Called in the transaction that gives it up. */
  onDead?(tx: Transaction, delivery: Delivery, error: unknown): Promise<void>
}
