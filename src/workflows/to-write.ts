/** From what was decided to what is written: names, ids and JSON. Pure but for new event ids. */
import { newEventId, stringifyJson } from '../events/index.ts'
import { toMs } from '../runtime/index.ts'
import { assertDepth, type Chain, chainAfter, metadataJson, type StoredChain } from './chain.ts'
import { type AcceptedStep, type ArmedTimer, isSnapshotDue, type WrittenEvent } from './decide-step.ts'
import {
  effectIdOf,
  effectNameOf,
  effectWorkName,
  eventTypeOf,
  localType,
  timerUniqueKey,
  typeOf,
  unnamedTimerKey,
} from './names.ts'
import type { Found, InstanceRef, NewEffect, NewEvent, NewTimer, Observation, StepWrite } from './store.ts'
import type { Workflow } from './workflow.ts'

/** What the row of an effect holds. */
export interface EffectPayload {
  readonly id: string
  readonly name: string
  readonly effect: unknown
  readonly generation: number
  /** Asked for by the decision that ended the instance: it is done although the instance is over. */
  readonly closing?: true | undefined
  /** Set in the row when an operator cancels the effect: the workflow is told instead of the handler being called. */
  readonly cancelled?: Cancelled | undefined
  readonly chain: StoredChain
}

export interface Cancelled {
  /** Attempts before the effect was cancelled. */
  readonly attempts: number
  /** Why: a clause without a full stop. */
  readonly reason: string
}

/** What the row of a timer holds, or of an input that waits for its instance to be resumed. */
export interface TimerPayload {
  readonly input: unknown
  readonly key?: string | undefined
  /** Milliseconds since 1970. */
  readonly due: number
  readonly inputId?: string | undefined
  /** Of the event of the log that brought the input. */
  readonly inputPosition?: string | undefined
  /**
   * No timer, but an input that came while its instance was paused: it is for whatever life follows. The workers keep the
   * order of those that have one.
   */
  readonly held?: true | 'in order' | undefined
  readonly chain: StoredChain
}

/** An input on its way through the engine. */
export interface Taken<I> {
  readonly instance: InstanceRef
  readonly input: I
  readonly inputId: string | undefined
  /** Of the event of the log that brought it. */
  readonly inputPosition: bigint | undefined
  readonly chain: Chain
}

export const NOTHING: StepWrite = {
  events: [],
  tenant: undefined,
  uniqueKey: undefined,
  continuesAfter: undefined,
  completed: false,
  effects: [],
  timers: [],
  cancelTimers: [],
  snapshot: undefined,
  recorded: undefined,
  observation: undefined,
}

export function toAccepted<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { instance, input, inputId, inputPosition, chain }: Taken<I>,
  found: Found,
  step: AcceptedStep<S, I, E, F>,
  maxDepth: number,
): StepWrite {
  assertDepth(chain, workflow.type, maxDepth)
  const events = step.events.map((event) => toNewEvent(workflow, event))
  const firstId = events[0]!.id
  const first = found.version + 1
  const last = found.version + events.length
  const handedOn = chainAfter(chain, events.at(-1)!.id, firstId)
  const generation = found.generation + (step.continuesAfter === undefined ? 0 : 1)
  const uniqueKey = step.uniqueKey === found.uniqueKey ? undefined : step.uniqueKey
  return {
    events: events.map(({ schemaVersion, ...event }) => ({
      ...event,
      metadata: metadataJson(chain, firstId, schemaVersion),
    })),
    tenant: chain.tenant,
    uniqueKey,
    continuesAfter: step.continuesAfter,
    completed: step.completed,
    effects: step.effects.map((effect, n) =>
      toNewEffect(workflow, instance, effect, {
        first,
        n,
        generation,
        closing: step.completed ? true : undefined,
        handedOn,
      }),
    ),
    // What is over does not wake up again.
    timers: step.completed ? [] : step.timers.map((timer, n) => toNewTimer(instance.id, timer, { first, n, handedOn })),
    cancelTimers: step.cancelTimers.map((key) => timerUniqueKey(instance.id, key)),
    snapshot: snapshotOf(workflow, step, found.version, last),
    recorded:
      inputId === undefined
        ? undefined
        : {
            inputId,
            outcome: JSON.stringify({ outcome: 'accepted', from: first, to: last }),
            position: inputPosition,
          },
    observation: observe(workflow, input, inputId, found, { outcome: 'accepted' }),
  }
}

/** Nothing but what was asked to be remembered. */
export function toRejected<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { input, inputId, inputPosition }: Taken<I>,
  found: Found,
  reason: R,
): StepWrite | undefined {
  if (inputId === undefined && workflow.observe === undefined) return undefined
  const outcome = toJson({ outcome: 'rejected', reason: reason ?? null }, 'rejection')
  return {
    ...NOTHING,
    recorded: inputId === undefined ? undefined : { inputId, outcome, position: inputPosition },
    observation: observe(workflow, input, inputId, found, { outcome: 'rejected', reason }),
  }
}

export function toCompleted<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { input, inputId }: Taken<I>,
  found: Found,
): StepWrite | undefined {
  if (workflow.observe === undefined) return undefined
  return { ...NOTHING, observation: observe(workflow, input, inputId, found, { outcome: 'already_completed' }) }
}

/** An input that must not get lost waits until its instance is resumed, or for those that came before it. */
export function toWaiting<I>(
  { instance, input, inputId, inputPosition, chain }: Taken<I>,
  { now, paused }: Found,
  hold: true | 'in order' | NewTimer,
): StepWrite {
  if (typeof hold === 'object') return { ...NOTHING, timers: [hold] }
  const { correlationId, causationId, depth, userId, tenant, traceparent } = chain
  const id = inputId ?? newEventId()
  const handedOn: StoredChain = {
    correlation: correlationId ?? id,
    causation: causationId,
    depth: depth === 0 ? undefined : depth,
    user: userId,
    tenant,
    trace: traceparent,
  }
  const payload: TimerPayload = {
    input,
    due: now.getTime(),
    inputId,
    inputPosition: inputPosition?.toString(),
    held: hold,
    chain: handedOn,
  }
  const uniqueKey = JSON.stringify([instance.id, 'held', id, 0])
  const dueMs = paused ? Number.POSITIVE_INFINITY : payload.due
  return { ...NOTHING, timers: [{ uniqueKey, dueMs, held: true, payload: toJson(payload, 'input') }] }
}

function toNewEvent<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { event, json }: WrittenEvent<E>,
): Omit<NewEvent, 'metadata'> & { schemaVersion: number } {
  const type = eventTypeOf(workflow.type, event)
  const local = localType(workflow.type, type)
  const versions = workflow.events
  const schemaVersion = versions && Object.hasOwn(versions, local) ? versions[local]!.version : 1
  return { id: newEventId(), type, payload: json, schemaVersion }
}

function toNewEffect<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { type, id }: InstanceRef,
  effect: F,
  {
    first,
    n,
    handedOn,
    ...life
  }: { first: number; n: number; handedOn: StoredChain } & Pick<EffectPayload, 'generation' | 'closing'>,
): NewEffect {
  const ordered = workflow.orderedEffects ?? false
  const name = effectNameOf(effect)
  const payload: EffectPayload = { id: effectIdOf(type, id, first, n), name, effect, ...life, chain: handedOn }
  return {
    name: effectWorkName(type, name, ordered),
    ordered,
    destination: workflow.destination?.(effect) ?? '',
    payload: toJson(payload, 'effect'),
  }
}

function toNewTimer<I>(
  id: string,
  { input, key, dueMs }: ArmedTimer<I>,
  { first, n, handedOn }: { first: number; n: number; handedOn: StoredChain },
): NewTimer {
  // A timer begins a chain of its own: what wakes every day for years is not a loop.
  const payload: TimerPayload = { input, key, due: dueMs, chain: { ...handedOn, depth: undefined } }
  const uniqueKey = key === undefined ? unnamedTimerKey(id, first, n) : timerUniqueKey(id, key)
  return { uniqueKey, dueMs, held: false, payload: toJson(payload, 'timer') }
}

function snapshotOf<S, I, E, F, R>(
  { snapshots = {} }: Workflow<S, I, E, F, R>,
  { state, completed }: AcceptedStep<S, I, E, F>,
  before: number,
  after: number,
): StepWrite['snapshot'] {
  const { every = 100, keep = 1, version = 1, encode } = snapshots
  if (completed || !isSnapshotDue(before, after, every)) return undefined
  return { state: toJson(encode ? encode(state) : (state ?? null), 'state'), version, keep }
}

function observe<S, I, E, F, R>(
  { observe: options }: Workflow<S, I, E, F, R>,
  input: I,
  inputId: string | undefined,
  { now }: Found,
  result: { outcome: Observation['outcome']; reason?: R },
): Observation | undefined {
  if (options === undefined) return undefined
  const { reason } = result
  const shownReason = options.redactRejection && reason !== undefined ? options.redactRejection(reason) : reason
  return {
    inputId,
    inputType: typeOf(input),
    input: toJson((options.redact ? options.redact(input) : input) ?? null, 'input'),
    redacted: options.redact !== undefined,
    outcome: result.outcome,
    rejection: result.outcome === 'rejected' ? toJson(shownReason ?? null, 'rejection') : undefined,
    decidedAtMs: now.getTime(),
    keepSeconds: toMs(options.retention ?? KEEP_OBSERVATIONS, 'observe.retention') / 1_000,
  }
}

export function toJson(value: unknown, name: string): string {
  return stringifyJson(value, { maxBytes: LARGEST, maxDepth: 1_000, name })
}

const KEEP_OBSERVATIONS = '30d'

/** What Postgres takes for one value, less what goes around it. */
const LARGEST = 200_000_000
