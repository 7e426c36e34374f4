/** What an instance waits for, and what a step makes of it. Pure: the drawing and the kit for tests go by it. */
import type { AcceptedStep, ArmedTimer } from './decide-step.ts'
import type { Workflow } from './workflow.ts'

export interface Pending<Input, Effect> {
  readonly timers: readonly ArmedTimer<Input>[]
  readonly effects: readonly Effect[]
}

export const NOTHING_PENDING: Pending<never, never> = { timers: [], effects: [] }

export function pendingAfter<S, I, E, F>(
  { effectsOnCompletion = 'cancel' }: Pick<Workflow, 'effectsOnCompletion'>,
  before: Pending<I, F>,
  step: AcceptedStep<S, I, E, F>,
): Pending<I, F> {
  const isNewLife = step.continuesAfter !== undefined
  const effects = effectsOnCompletion === 'run' ? [...before.effects, ...step.effects] : effectsOfLife(before, step)
  if (step.completed) return { timers: [], effects }
  const replaced = new Set([...step.cancelTimers, ...step.timers.map(({ key }) => key)])
  // A new life knows nothing of the timers of the one before.
  const kept = isNewLife ? [] : before.timers.filter(({ key }) => key === undefined || !replaced.has(key))
  return { timers: [...kept, ...step.timers], effects }
}

/** The end of a life cancels the effects that earlier decisions asked for. The last decision knows that it is the last. */
function effectsOfLife<S, I, E, F>(before: Pending<I, F>, step: AcceptedStep<S, I, E, F>): readonly F[] {
  const isEnd = step.completed || step.continuesAfter !== undefined
  return isEnd ? step.effects : [...before.effects, ...step.effects]
}

/** The one that fires first; of several at the same moment, the one that was armed first. */
export function firstTimer<I>(timers: readonly ArmedTimer<I>[]): ArmedTimer<I> | undefined {
  return timers.reduce<ArmedTimer<I> | undefined>(
    (first, one) => (first && first.dueMs <= one.dueMs ? first : one),
    undefined,
  )
}

export function without<T>(all: readonly T[], one: T): T[] {
  return all.filter((other) => other !== one)
}
