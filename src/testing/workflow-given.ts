/**
 * `given(workflow, events).when(input).then({ … })`: what a workflow does, told as a story and played without anything
 * around it. Time is a number in the story: `whenTimePasses('24h')` takes no time, and fires every timer on its way.
 * Effects are collected; `whenDone` says that one was done and what it answered.
 *
 * Each part of a story is a value. Go on twice from the same one to see two endings.
 */
import { toErrorRecord } from '../dead-letters/index.ts'
import { type Duration, toMs } from '../runtime/index.ts'
import { deepFreeze, firstTimer, NOTHING_PENDING, type Pending, type Workflow, without } from '../workflows/index.ts'
import { type Expected, findEffect, type Happened, verify } from './workflow-expected.ts'
import { type Life, put, toStored } from './workflow-life.ts'

export interface GivenOptions {
  /** When the story begins. */
  readonly now?: Date | undefined
}

/** How things stand. */
export interface Given<State, Input, Event, Effect, Rejection> {
  readonly state: State
  readonly now: Date
  /** It is over: further inputs find it completed. */
  readonly completed: boolean
  /** Asked of the world and not done yet, in order. */
  readonly effects: readonly Effect[]
  /** Armed and not fired, the next one first. */
  readonly timers: readonly { readonly input: Input; readonly key: string | undefined; readonly due: Date }[]
  when(input: Input): When<State, Input, Event, Effect, Rejection>
  /** Timers that come due on the way fire at their time, one after the other, also those armed on the way. */
  whenTimePasses(duration: Duration): When<State, Input, Event, Effect, Rejection>
  /** An effect that was asked for is done; what its handler returned comes in as an input. */
  whenDone(effect: Effect, answer?: Input): When<State, Input, Event, Effect, Rejection>
  /** An effect ran out of attempts or was cancelled: the workflow hears of it through `onDeadLetter`. */
  whenDead(effect: Effect, error?: Error): When<State, Input, Event, Effect, Rejection>
}

export interface When<State, Input, Event, Effect, Rejection> {
  /**
   * What is named must be exactly so; a rejection that is not named is a failure. Or a function that looks for itself:
   * so a `when` that is awaited gives what happened.
   */
  then(
    expected:
      | Expected<State, Input, Event, Effect, Rejection>
      | ((happened: Happened<State, Input, Event, Effect, Rejection>) => void),
  ): Given<State, Input, Event, Effect, Rejection>
}

/** `events` happened before. What their decisions asked for and armed is not known: tell that with `when`. */
export function given<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  events: readonly E[] = [],
  { now = new Date('2026-01-01T00:00:00Z') }: GivenOptions = {},
): Given<S, I, E, F, R> {
  let state = deepFreeze(workflow.initial())
  for (const event of events) state = deepFreeze(workflow.evolve(state, toStored(event)))
  const completed = events.length > 0 && (workflow.isTerminal?.(state) ?? false)
  return toGiven(workflow, { id: 'given', state, completed, pending: NOTHING_PENDING, nowMs: now.getTime() })
}

function toGiven<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, life: Life<S, I, F>): Given<S, I, E, F, R> {
  const { state, completed, pending, nowMs } = life
  const after = (inputs: readonly I[], from = life) => toWhen<S, I, E, F, R>(workflow, play(workflow, from, inputs))
  const settled = (effect: F): Life<S, I, F> => ({ ...life, pending: withoutEffect(workflow.type, pending, effect) })
  return {
    state,
    completed,
    now: new Date(nowMs),
    effects: pending.effects,
    timers: [...pending.timers]
      .sort((a, b) => a.dueMs - b.dueMs)
      .map(({ input, key, dueMs }) => ({ input, key, due: new Date(dueMs) })),
    when: (input) => after([input]),
    whenTimePasses: (duration) => toWhen(workflow, pass(workflow, life, nowMs + toMs(duration, 'whenTimePasses'))),
    whenDone: (effect, answer) => after(answer === undefined ? [] : [answer], settled(effect)),
    whenDead(effect, error = new Error('it failed')) {
      const from = settled(effect)
      const letter = {
        kind: 'effect' as const,
        effect,
        idempotencyKey: 'given',
        workflow: { type: workflow.type, id: life.id },
        error: toErrorRecord(error),
        attempts: 5,
      }
      const told = workflow.onDeadLetter?.(letter)
      return after(told === undefined ? [] : [told], from)
    },
  }
}

/** A life, and everything that happened since the last `then`. */
interface Played<S, I, E, F, R> {
  readonly life: Life<S, I, F>
  readonly happened: Happened<S, I, E, F, R>
}

function toWhen<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { life, happened }: Played<S, I, E, F, R>,
): When<S, I, E, F, R> {
  return {
    // biome-ignore lint/suspicious/noThenProperty: the word of the kit; awaiting it does no harm.
    then(expected) {
      if (typeof expected === 'function') expected(happened)
      else verify(workflow.type, happened, expected)
      return toGiven(workflow, life)
    },
  }
}

function play<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  before: Life<S, I, F>,
  inputs: readonly I[],
): Played<S, I, E, F, R> {
  let played: Played<S, I, E, F, R> = { life: before, happened: nothingHappened(before) }
  for (const input of inputs) played = add(played, put(workflow, played.life, toStored(input)))
  return played
}

/** From timer to timer, up to the moment asked for. */
function pass<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  before: Life<S, I, F>,
  untilMs: number,
): Played<S, I, E, F, R> {
  let played: Played<S, I, E, F, R> = { life: before, happened: nothingHappened(before) }
  for (;;) {
    const { life } = played
    const timer = firstTimer(life.pending.timers)
    if (timer === undefined || timer.dueMs > untilMs) break
    const pending = { ...life.pending, timers: without(life.pending.timers, timer) }
    const firing = { ...life, pending, nowMs: Math.max(life.nowMs, timer.dueMs) }
    played = add(played, put(workflow, firing, timer.input))
  }
  const life = { ...played.life, nowMs: untilMs }
  return { life, happened: played.happened }
}

function add<S, I, E, F, R>(before: Played<S, I, E, F, R>, next: Played<S, I, E, F, R>): Played<S, I, E, F, R> {
  const [first, second] = [before.happened, next.happened]
  return {
    life: next.life,
    happened: {
      ...second,
      events: [...first.events, ...second.events],
      effects: [...first.effects, ...second.effects],
      timers: [...first.timers, ...second.timers],
      cancelled: [...first.cancelled, ...second.cancelled],
      rejections: [...first.rejections, ...second.rejections],
    },
  }
}

function nothingHappened<S, I, E, F, R>({ state, completed, nowMs }: Life<S, I, F>): Happened<S, I, E, F, R> {
  return {
    outcome: undefined,
    events: [],
    effects: [],
    timers: [],
    cancelled: [],
    rejections: [],
    state,
    completed,
    now: new Date(nowMs),
  }
}

function withoutEffect<I, F>(workflow: string, { timers, effects }: Pending<I, F>, effect: F): Pending<I, F> {
  return { timers, effects: without(effects, findEffect(workflow, effects, effect)) }
}
