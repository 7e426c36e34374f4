/** An instance in a story, and what one input makes of it. Decisions are those of production; nothing is kept. */
import { parseJson, stringifyJson } from '../events/index.ts'
import { decideStep, type Pending, pendingAfter, type Workflow } from '../workflows/index.ts'
import type { Happened } from './workflow-expected.ts'

export interface Life<State, Input, Effect> {
  /** Of the instance, as the last input had it. */
  readonly id: string
  readonly state: State
  readonly completed: boolean
  readonly pending: Pending<Input, Effect>
  readonly nowMs: number
}

export function put<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  before: Life<S, I, F>,
  input: I,
): { life: Life<S, I, F>; happened: Happened<S, I, E, F, R> } {
  const now = new Date(before.nowMs)
  const nothing = { events: [], effects: [], timers: [], cancelled: [], rejections: [], now }
  const unchanged = { ...nothing, state: before.state, completed: before.completed }
  const instance = { type: workflow.type, id: workflow.id(input) }
  if (before.completed) return { life: before, happened: { ...unchanged, outcome: 'completed' } }
  const step = decideStep(workflow, instance, before.state, input, now)
  if (step.outcome === 'rejected') {
    return { life: before, happened: { ...unchanged, outcome: 'rejected', rejections: [step.reason] } }
  }
  const { state, completed } = step
  // As a handler, a timer or a reader of the log will get them: through JSON.
  const effects = step.effects.map(toStored)
  const timers = step.timers.map((timer) => ({ ...timer, input: toStored(timer.input) }))
  const pending = pendingAfter(workflow, before.pending, { ...step, effects, timers })
  return {
    life: { id: instance.id, state, completed, pending, nowMs: before.nowMs },
    happened: {
      outcome: 'accepted',
      events: step.events.map(({ event }) => event),
      effects,
      timers: timers.map(({ input: later, key, dueMs }) => ({ input: later, key, due: new Date(dueMs) })),
      cancelled: step.cancelTimers,
      rejections: [],
      state,
      completed,
      now,
    },
  }
}

/** What a value is when it comes back out of the database. Throws where it could not be kept. */
export function toStored<T>(value: T): T {
  return parseJson(stringifyJson(value)) as T
}
