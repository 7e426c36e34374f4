/** What `decide` answers: events that happened, with what follows from them, or the reason why not. */
import { type Duration, toMs } from '../runtime/index.ts'

/** Something happened. At least one event: an input that changes nothing is rejected. */
export interface Accept<Event, Effect, Input> {
  readonly accepted: true
  readonly events: readonly [Event, ...Event[]]
  readonly effects: readonly Effect[]
  readonly timers: readonly Timer<Input>[]
  /** Keys of timers that are not to fire any more. */
  readonly cancelTimers: readonly string[]
  /** Ends this life of the instance and begins the next one with this input. */
  readonly continueAsNew: { readonly input: Input } | undefined
}

/** Nothing happened, and nothing is left behind. */
export interface Reject<Rejection> {
  readonly accepted: false
  readonly reason: Rejection
}

export type Decision<Event, Effect, Input, Rejection> = Accept<Event, Effect, Input> | Reject<Rejection>

/** An input that comes later, by the database's clock. */
export interface Timer<Input> {
  readonly input: Input
  /** Another timer of the instance with the same key takes its place. */
  readonly key: string | undefined
  readonly due: { readonly afterMs: number } | { readonly at: Date }
}

export interface AcceptOptions<Effect, T, Next> {
  readonly effects?: readonly Effect[] | undefined
  readonly timers?: readonly T[] | undefined
  readonly cancelTimers?: readonly string[] | undefined
  readonly continueAsNew?: Next | undefined
}

export interface TimerOptions {
  readonly key?: string | undefined
}

/** By the timers rather than by their inputs: two timers may bring different ones. */
export function accept<const Event, const Effect = never, T extends Timer<unknown> = never, const Next = never>(
  events: readonly [Event, ...Event[]],
  options: AcceptOptions<Effect, T, Next> = {},
): Accept<Event, Effect, TimerInput<T> | Next> {
  const { effects = [], timers = [], cancelTimers = [], continueAsNew } = options
  return {
    accepted: true,
    events,
    effects,
    timers: timers as readonly Timer<unknown>[] as readonly Timer<TimerInput<T>>[],
    cancelTimers,
    continueAsNew: continueAsNew === undefined ? undefined : { input: continueAsNew },
  }
}

type TimerInput<T> = T extends Timer<infer Input> ? Input : never

export function reject<const Rejection>(reason: Rejection): Reject<Rejection> {
  return { accepted: false, reason }
}

/** `after('24h', { type: 'remind' }, { key: 'reminder' })`: from the moment of the decision. */
export function after<const Input>(delay: Duration, input: Input, { key }: TimerOptions = {}): Timer<Input> {
  return { input, key, due: { afterMs: toMs(delay, 'after') } }
}

/** At a moment; one that has passed is due at once. */
export function at<const Input>(time: Date, input: Input, { key }: TimerOptions = {}): Timer<Input> {
  return { input, key, due: { at: time } }
}
