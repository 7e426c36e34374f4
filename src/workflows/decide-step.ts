/**
 * One step of an instance: given its state, an input and the time, what follows. Pure, and the same for every store: it
 * neither reads nor writes, and what it answers is everything that must be written.
 */
import { parseJson, stringifyJson } from '../events/index.ts'
import type { Accept } from './decision.ts'
import { deepFreeze } from './freeze.ts'
import type { InstanceRef } from './store.ts'
import type { Workflow } from './workflow.ts'
import { badDecision } from './workflow-error.ts'

export type Step<S, I, E, F, R> =
  | { readonly outcome: 'rejected'; readonly reason: R }
  | ({ readonly outcome: 'accepted' } & AcceptedStep<S, I, E, F>)

export interface AcceptedStep<S, I, E, F> {
  readonly events: readonly WrittenEvent<E>[]
  /** After the last event. */
  readonly state: S
  readonly completed: boolean
  readonly effects: readonly F[]
  readonly timers: readonly ArmedTimer<I>[]
  readonly cancelTimers: readonly string[]
  readonly uniqueKey: string | undefined
  /** After so many of the events a new life begins. */
  readonly continuesAfter: number | undefined
}

/** An event as it will be read again: what JSON makes of it, so that a replay finds the same state. */
export interface WrittenEvent<E> {
  readonly event: E
  readonly json: string
}

export interface ArmedTimer<I> {
  readonly input: I
  readonly key: string | undefined
  readonly dueMs: number
}

/** What an event may have. */
export interface EventLimits {
  readonly maxPayloadBytes: number
  readonly maxNesting: number
}

const NO_LIMITS: EventLimits = { maxPayloadBytes: Number.MAX_SAFE_INTEGER, maxNesting: 1_000 }

export function decideStep<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  state: S,
  input: I,
  now: Date,
  limits: EventLimits = NO_LIMITS,
): Step<S, I, E, F, R> {
  const decision = workflow.decide(state, input, { now: new Date(now) })
  if (!decision?.accepted) {
    if (decision?.accepted === false) return { outcome: 'rejected', reason: decision.reason }
    throw badDecision(instance, 'answered neither accept(…) nor reject(…)')
  }
  const first = applyDecision(workflow, instance, state, decision, input, now, limits)
  const next = decision.continueAsNew
  return { outcome: 'accepted', ...(next ? continueWith(workflow, instance, first, next.input, now, limits) : first) }
}

function applyDecision<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  before: S,
  decision: Accept<E, F, I>,
  input: I,
  now: Date,
  limits: EventLimits,
): AcceptedStep<S, I, E, F> {
  if (!Array.isArray(decision.events) || decision.events.length === 0) {
    throw badDecision(instance, 'accepted an input without an event; reject it where nothing happens')
  }
  const events = decision.events.map((event) => toWritten(event, limits))
  let state = before
  for (const { event } of events) state = deepFreeze(workflow.evolve(state, event))
  return {
    events,
    state,
    completed: workflow.isTerminal?.(state) ?? false,
    effects: decision.effects,
    timers: armTimers(instance, decision, now),
    cancelTimers: decision.cancelTimers,
    uniqueKey: uniqueKeyOf(workflow, instance, input),
    continuesAfter: undefined,
  }
}

function toWritten<E>(event: E, { maxPayloadBytes, maxNesting }: EventLimits): WrittenEvent<E> {
  const json = stringifyJson(event ?? null, { maxBytes: maxPayloadBytes, maxDepth: maxNesting, name: 'event' })
  return { event: deepFreeze(parseJson(json) as E), json }
}

/** The next life begins in the same step: its first input must be one that it accepts. */
function continueWith<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  last: AcceptedStep<S, I, E, F>,
  input: I,
  now: Date,
  limits: EventLimits,
): AcceptedStep<S, I, E, F> {
  if (last.timers.length > 0) throw badDecision(instance, 'armed a timer and continued as new, which cancels it')
  const initial = deepFreeze(workflow.initial())
  const decision = workflow.decide(initial, input, { now: new Date(now) })
  if (!decision.accepted) throw badDecision(instance, 'continued as new with an input that it rejects')
  if (decision.continueAsNew) throw badDecision(instance, 'continued as new twice in one step')
  const next = applyDecision(workflow, instance, initial, decision, input, now, limits)
  return {
    ...next,
    events: [...last.events, ...next.events],
    effects: [...last.effects, ...next.effects],
    uniqueKey: next.uniqueKey ?? last.uniqueKey,
    continuesAfter: last.events.length,
  }
}

function armTimers<E, F, I>(instance: InstanceRef, { timers }: Accept<E, F, I>, now: Date): ArmedTimer<I>[] {
  const keys = new Set<string>()
  return timers.map(({ input, key, due }) => {
    if (key !== undefined && keys.has(key)) {
      throw badDecision(instance, `armed two timers with the key ${JSON.stringify(key)}`)
    }
    if (key !== undefined) keys.add(key)
    const dueMs = 'afterMs' in due ? now.getTime() + due.afterMs : due.at.getTime()
    if (!(Math.abs(dueMs) <= LAST_DUE_MS)) throw badDecision(instance, 'armed a timer for a time that is none')
    return { input, key, dueMs }
  })
}

/** The end of the year 9998: later than any plan, and a time that both sides can write. */
const LAST_DUE_MS = Date.UTC(9999, 0, 1) - 1

function uniqueKeyOf<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  input: I,
): string | undefined {
  const key = workflow.uniqueKey?.(input) ?? undefined
  if (key === undefined || (typeof key === 'string' && key !== '' && key.length <= 255 && !key.includes('\0')))
    return key
  throw badDecision(instance, 'has a `uniqueKey` that is not 1 to 255 characters of text')
}

/** Whether a snapshot is due: `every` events were completed by this step. */
export function isSnapshotDue(before: number, after: number, every: number): boolean {
  return every > 0 && Math.floor(after / every) > Math.floor(before / every)
}
