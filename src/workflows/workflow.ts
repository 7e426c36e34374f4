/**
 * A workflow: a long-lived process as pure functions. `decide` says what follows from an input, `evolve` what an event
 * makes of the state; neither reads a clock or does anything. Whatever is to be done in the world is an effect.
 */
import type { ErrorRecord } from '../dead-letters/index.ts'
import type { UpcastStep } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Duration, RetryOptions } from '../runtime/index.ts'
import type { Decision } from './decision.ts'

export interface DecideContext {
  /** The database's time, read after the instance was locked: it never goes back within an instance. */
  readonly now: Date
}

// Methods rather than properties: a registry keeps workflows of all types under one.
export interface WorkflowOptions<State, Input, Event, Effect, Rejection> {
  /** Lower-case words joined by dots. Events are stored as `<type>.<event.type>`. */
  readonly type: string
  /** Which instance an input is for. */
  id(input: Input): string
  initial(): State
  /** Pure. The state is frozen: return another one. */
  evolve(state: State, event: Event): State
  /** Pure. */
  decide(state: State, input: Input, context: DecideContext): Decision<Event, Effect, Input, Rejection>
  /** Then it is over: timers are cancelled, the unique key is free, further inputs find it completed. */
  isTerminal?(state: State): boolean
  /** At most one instance that is not over has this key. An input that gives none leaves the key as it is. */
  uniqueKey?(input: Input): string | null | undefined
  /**
   * The input that tells the workflow of an effect or timer that became a dead letter, or of an effect that was cancelled
   * (`letter.error.code` is EFFECT_CANCELLED).
   */
  onDeadLetter?(letter: WorkflowLetter<Effect, Input>): Input | undefined
  /** Events of the log that are inputs: name → input, or undefined where it is none of ours. */
  readonly on?: Readonly<Record<string, (event: AnyEvent) => Input | undefined>>
  /** Versions of events by their `type`, and the steps that lift older ones. */
  readonly events?: Readonly<Record<string, EventVersions>>
  readonly snapshots?: SnapshotOptions<State>
  /** Keep what was put in and what came of it. */
  readonly observe?: ObserveOptions<Input, Rejection>
  /**
   * What becomes of effects that earlier decisions asked for and that have not begun when an instance is over. Effects of
   * the decision that ends it are done. Default: 'cancel'.
   */
  readonly effectsOnCompletion?: 'run' | 'cancel'
  /** One effect of an instance at a time, in order, also behind a dead letter. Side by side unless told. */
  readonly orderedEffects?: boolean
  /** Where an effect goes, for limits that all processes share (`[destinations]`). */
  destination?(effect: Effect): string | undefined
}

export interface EventVersions {
  readonly version: number
  /** Step n turns an event of version n into one of version n + 1. */
  readonly upcast: Readonly<Record<number, UpcastStep>>
}

export interface SnapshotOptions<State> {
  /** A snapshot every so many events; 100 unless told, 0 for none. */
  readonly every?: number
  /** How many are kept; 1 unless told. */
  readonly keep?: number | 'all'
  /** Raise it when `evolve` makes something else of the same events: older snapshots are not used then. 1 unless told. */
  readonly version?: number
  /** For a state that is not plain JSON. */
  encode?(state: State): unknown
  decode?(stored: unknown): State
}

export interface ObserveOptions<Input, Rejection> {
  /** How long observations are kept; 30 days unless told. */
  readonly retention?: Duration
  /** What is kept of an input. Decisions about it cannot be replayed then. */
  redact?(input: Input): unknown
  redactRejection?(reason: Rejection): unknown
}

/** An effect or a timer that ran out of attempts, or an effect that was cancelled. */
export type WorkflowLetter<Effect, Input> = {
  readonly workflow: { readonly type: string; readonly id: string }
  readonly error: ErrorRecord
  readonly attempts: number
} & (
  | { readonly kind: 'effect'; readonly effect: Effect; readonly idempotencyKey: string }
  | { readonly kind: 'timer'; readonly input: Input; readonly key: string | null }
)

/** A definition that was checked. */
export interface Workflow<State = unknown, Input = unknown, Event = unknown, Effect = unknown, Rejection = unknown>
  extends WorkflowOptions<State, Input, Event, Effect, Rejection> {
  readonly [CHECKED]: true
}

export const CHECKED = Symbol('checked')

export type InputOf<W> = W extends Workflow<infer _S, infer Input, infer _E, infer _F, infer _R> ? Input : never
export type EffectOf<W> = W extends Workflow<infer _S, infer _I, infer _E, infer Effect, infer _R> ? Effect : never

/** What became of an input. */
export type Outcome<Event = unknown, Rejection = unknown> =
  | { readonly outcome: 'accepted'; readonly events: readonly Event[] }
  | { readonly outcome: 'rejected'; readonly reason: Rejection }
  | { readonly outcome: 'completed' }

/** What an effect handler is told besides the effect. */
export interface EffectContext {
  /** The same for every try of this effect: give it to whoever must not act twice. */
  readonly idempotencyKey: string
  readonly workflow: { readonly type: string; readonly id: string }
  /** From 1. */
  readonly attempt: number
  readonly isRetry: boolean
  readonly createdAt: Date
  /** Fires when its time is up, its claim is lost or it was cancelled: what is returned then changes nothing. */
  readonly signal: AbortSignal
}

/** Does it, and may answer with an input, which is applied in the transaction that ends the effect. */
export type EffectHandler<Effect, Input> = (
  effect: Effect,
  context: EffectContext,
) => Input | undefined | Nothing | Promise<Input | undefined | Nothing>

/** What a function without an answer returns. */
type Nothing = ReturnType<() => void>

/** A handler with settings of its own. */
export interface EffectWork<Effect, Input> {
  readonly handle: EffectHandler<Effect, Input>
  /** 5 attempts, 1 s doubling to 300 s, unless told. */
  readonly retry?: RetryOptions | undefined
  /** For one call; 30 s unless told. */
  readonly timeout?: Duration | undefined
}

/** By the `type` of effects, or `effect` for those without one. `'elsewhere'`: other processes do these. */
export type EffectHandlers<Effect, Input> = {
  readonly [Name in EffectName<Effect>]:
    | EffectHandler<EffectNamed<Effect, Name>, Input>
    | EffectWork<EffectNamed<Effect, Name>, Input>
    | 'elsewhere'
}

export type EffectName<Effect> = Effect extends { readonly type: infer Name extends string } ? Name : 'effect'

type EffectNamed<Effect, Name> = Effect extends { readonly type: infer Own extends string }
  ? Own extends Name
    ? Effect
    : never
  : Name extends 'effect'
    ? Effect
    : never
