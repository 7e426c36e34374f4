/** The words of a receipt. */
import type { ErrorRecord } from '../dead-letters/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { ExplainedObserver } from '../observers/index.ts'

/**
 * done: it ended well. running: a process works on it. waiting: it is due and has no place or no worker. scheduled: it is
 * due later. retrying: an attempt failed and the next one is due at `dueAt`. paused: an operator paused it. queued: an
 * earlier action of its observer or an earlier row of its key comes first. parked: an earlier event of its key is a dead
 * letter. dead: its attempts are used up. redriving: an operator asked for it again. discarded: an operator or a failure
 * policy gave it up. not_yet: its reader has not come to the event. skipped: an operator moved the reader past it.
 * unrecorded: nothing is kept that says how it ended.
 */
export type ReactionState =
  | 'done'
  | 'running'
  | 'waiting'
  | 'scheduled'
  | 'retrying'
  | 'paused'
  | 'queued'
  | 'parked'
  | 'dead'
  | 'redriving'
  | 'discarded'
  | 'not_yet'
  | 'skipped'
  | 'unrecorded'

/** One thing that followed the event. */
export interface Reaction {
  readonly state: ReactionState
  /** When the state began, as far as that is kept. */
  readonly at: Date | null
  /** True where the state follows from a checkpoint and no record of the event itself is kept. */
  readonly derived: boolean
  /** When it is due: of states scheduled and retrying. */
  readonly dueAt: Date | null
  readonly attempts: number
  readonly error: ErrorRecord | null
  /** The dead letter that says so. */
  readonly deadLetter: bigint | null
  /** The delivery that stands for it. */
  readonly delivery: bigint | null
  /** Why it is not over, in a sentence; null when it is. */
  readonly waitsFor: string | null
}

/** A subscription, projection, relay or cluster hook. Instance hooks and live feeds keep no checkpoint and are not here. */
export interface SubscriptionPart extends Reaction {
  readonly id: string
  readonly kind: string
  /** The process that runs it now. */
  readonly owner: string | null
}

/** An observer with the values that decided, and what became of each of its actions. */
export type ObserverPart = Omit<ExplainedObserver, 'actions' | 'verdict'> & {
  /** environment: whether its condition holds depends on variables of a process. */
  readonly verdict: ExplainedObserver['verdict'] | 'environment'
  readonly actions: readonly ActionPart[]
}

export interface ActionPart extends Reaction {
  readonly name: string
  readonly type: string
  readonly destination: string | null
  readonly history: readonly ReceiptAttempt[]
}

/** One recorded attempt. Secrets of the request are masked when it is recorded. */
export interface ReceiptAttempt {
  readonly attempt: number
  readonly at: Date
  readonly durationMs: number
  readonly outcome: string
  readonly message: string
  readonly code: string | null
  readonly request: unknown
  readonly response: unknown
}

/** An effect or a timer that a workflow asked for. */
export interface WorkPart extends Reaction {
  readonly kind: 'effect' | 'timer'
  readonly name: string
  readonly workflow: { readonly type: string; readonly id: string }
  /** The event of the workflow that asked for it. */
  readonly askedBy: string
}

export interface CausedEvent {
  readonly id: string
  readonly type: string
  readonly position: bigint
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly recordedAt: Date
  /** 1: the event itself led to it. */
  readonly depth: number
}

/** Something that is not over, and the command that moves it. */
export interface OpenItem {
  readonly what: string
  readonly why: string
  /** A whole command; null when only time moves it. */
  readonly command: string | null
}

export interface ReceiptCounts {
  readonly total: number
  readonly done: number
  readonly running: number
  readonly waiting: number
  readonly scheduled: number
  readonly dead: number
  readonly discarded: number
}

export interface Receipt {
  readonly event: AnyEvent
  /** By the clock of the database. */
  readonly asOf: Date
  /** Nothing that followed the event is open. Events it caused have receipts of their own. */
  readonly isSettled: boolean
  /** How the event stands, in one sentence. */
  readonly sentence: string
  readonly counts: ReceiptCounts
  readonly open: readonly OpenItem[]
  readonly subscriptions: readonly SubscriptionPart[]
  /** Those whose filter does not take the event, or that began after it. */
  readonly otherSubscriptions: number
  readonly observers: readonly ObserverPart[]
  readonly work: readonly WorkPart[]
  readonly caused: readonly CausedEvent[]
  /** False when more events may have been caused than were looked for: `searchedTo` says how far. */
  readonly complete: boolean
  readonly searchedTo: bigint
  /** What no receipt can hold. */
  readonly notes: readonly string[]
}
