/**
 * What workflows ask of their store. The engine calls `step` once per input. It may assume that steps of one instance come one
 * after the other, that what `decide` answers is written as a whole together with the rest of the transaction, or not at all,
 * and that the last call of `decide` saw the instance as it is stored. Postgres keeps workflows for real; the twin in
 * `aftercommit/testing` keeps them in memory.
 */
import type { AnyEvent } from '../log/index.ts'

/** Which instance. */
export interface InstanceRef {
  readonly type: string
  readonly id: string
}

/** One event of a history: as much of it as its state needs. */
export interface HistoryEvent {
  readonly version: number
  readonly position: bigint
  readonly id: string
  /** As the log has it: `<workflow>.<event.type>`. */
  readonly type: string
  readonly schemaVersion: number
  readonly payload: unknown
}

/** A state that was reached and kept, or the beginning of a new life (`state` undefined then). */
export interface Snapshot {
  readonly version: number
  readonly state: { readonly json: unknown } | undefined
}

/** What is stored of an instance, from `known` on. */
export interface Found {
  /** By the clock of the store, never before the last event of the instance. */
  readonly now: Date
  /** 0: there is no such instance. */
  readonly version: number
  /** Of its last event. */
  readonly position: bigint
  /** Counts lives: 1, then one more with every `continueAsNew`. */
  readonly generation: number
  readonly completed: boolean
  readonly paused: boolean
  /** Events of the log wait that came while it was paused. */
  readonly holds: boolean
  readonly uniqueKey: string | null
  /** The newest beyond what is known. */
  readonly snapshot: Snapshot | undefined
  /** Everything after the snapshot, else after what is known. With `recorded`, the events that came of that input. */
  readonly events: readonly HistoryEvent[]
  /** What is known belongs to this history. If not, the above is from the beginning. */
  readonly followsKnown: boolean
  /** What became of the input with this id before. */
  readonly recorded: RecordedOutcome | undefined
}

/** What is kept under an input id. Events are named by their versions. */
export type RecordedOutcome =
  | { readonly outcome: 'accepted'; readonly from: number; readonly to: number }
  | { readonly outcome: 'rejected'; readonly reason: unknown }

/** What the caller remembers of an instance. */
export interface KnownInstance {
  readonly version: number
  /** Of its last event. */
  readonly position: bigint
  readonly generation: number
  readonly uniqueKey: string | null
  readonly isOver: boolean
  /** By the clock of the store: its last event is not later. */
  readonly atMs: number
}

/** What becomes known of an input that carries an id. */
export interface RecordedInput {
  readonly inputId: string
  readonly outcome: string
  /** Of the event of the log that brought it: it is remembered as long as that event. */
  readonly position: bigint | undefined
}

export interface StepRequest {
  readonly instance: InstanceRef
  /** What the caller remembers, asked for when the step begins: the store need not read up to there. */
  readonly known: () => KnownInstance | undefined
  /** The time of the step is not before it: when a timer was due, in milliseconds since 1970. */
  readonly notBefore: number | undefined
  /** Snapshots of another version are not used. */
  readonly snapshotVersion: number
  readonly inputId: string | undefined
  /** A transaction of the caller's own. */
  readonly tx: unknown
  /** Done in the same transaction, after the instance is locked: the end of the delivery that brought the input. */
  readonly alongside: ((tx: never) => Promise<void>) | undefined
  /** What a store that keeps deliveries too uses instead: it ends this one by itself, and says when that is committed. */
  readonly delivery?: EndedDelivery | undefined
}

export interface EndedDelivery {
  readonly claim: { readonly segment: number; readonly id: bigint; readonly token: bigint }
  readonly settled: () => void
}

/** What follows from one input. JSON is text here: it was checked, and is written as it is. */
export interface StepWrite {
  readonly events: readonly NewEvent[]
  readonly tenant: string | undefined
  /** Taken in place of the one before. */
  readonly uniqueKey: string | undefined
  /** After so many of the events a new life begins. */
  readonly continuesAfter: number | undefined
  readonly completed: boolean
  readonly effects: readonly NewEffect[]
  readonly timers: readonly NewTimer[]
  /** Unique keys. */
  readonly cancelTimers: readonly string[]
  readonly snapshot: { readonly state: string; readonly version: number; readonly keep: number | 'all' } | undefined
  readonly recorded: RecordedInput | undefined
  readonly observation: Observation | undefined
}

export interface NewEvent {
  readonly id: string
  readonly type: string
  readonly payload: string
  readonly metadata: string
}

export interface NewEffect {
  /** What a worker must have registered. */
  readonly name: string
  readonly ordered: boolean
  readonly destination: string
  readonly payload: string
}

export interface NewTimer {
  readonly uniqueKey: string
  /** Infinity: not before the instance is resumed. */
  readonly dueMs: number
  /** It was due already, and replaces nothing. */
  readonly held: boolean
  readonly payload: string
}

export interface Observation {
  readonly inputId: string | undefined
  readonly inputType: string | undefined
  readonly input: string
  readonly redacted: boolean
  readonly outcome: 'accepted' | 'rejected' | 'already_completed'
  readonly rejection: string | undefined
  readonly decidedAtMs: number
  readonly keepSeconds: number
}

/** Whether it was written, and where the last event is. */
export type Written = { readonly position: bigint; readonly takenBy?: undefined } | { readonly takenBy: string }

export type Standing = 'open' | 'paused' | 'over'

export interface InstanceSummary extends InstanceRef {
  readonly version: number
  readonly generation: number
  readonly uniqueKey: string | null
  readonly completed: boolean
  readonly paused: boolean
  readonly createdAt: Date
  readonly lastEventAt: Date
  readonly completedAt: Date | null
  /** Of its last event: what lists go by. */
  readonly position: bigint
}

export interface WorkflowStore {
  /**
   * Decides and writes. `decide` may be called on what the caller remembers, and again on what is stored where that differs:
   * whatever follows from a call counts only where the instance was so. An answer of undefined writes nothing. Where `takenBy` is the answer, the unique key is
   * another instance's and nothing was written.
   */
  step(request: StepRequest, decide: (found: Found) => StepWrite | undefined): Promise<Written | undefined>
  /** Without a lock; up to a version when told. Undefined when there is no such instance. */
  load(
    instance: InstanceRef,
    options: { snapshotVersion: number; upTo?: number | undefined },
  ): Promise<Found | undefined>
  /** As the log has them, oldest first. */
  history(instance: InstanceRef, range: { from: number; to: number; limit: number }): Promise<AnyEvent[]>
  /** How it stands with the life that asked for an effect. */
  standing(instance: InstanceRef, generation: number): Promise<Standing>
  /** The workflow was told of this dead letter and deals with it, in the transaction that wrote the letter. */
  resolveReported(tx: never, letter: { kind: 'effect' | 'timer'; owner: string; eventId: string }): Promise<void>
  /** By last event, newest first; `before` is the position of the last one of the page before. */
  list(filter: { type: string | undefined; limit: number; before: bigint | undefined }): Promise<InstanceSummary[]>
}
