/** What a story expects, and how it is compared with what happened. */
import { AssertionError, deepStrictEqual } from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import { AftercommitError } from '../errors.ts'
import type { Timer } from '../workflows/index.ts'
import { toStored } from './workflow-life.ts'

/** Everything that followed: from one input, or from all that came while time passed. */
export interface Happened<State, Input, Event, Effect, Rejection> {
  /** What became of the last input; undefined when there was none. */
  readonly outcome: 'accepted' | 'rejected' | 'completed' | undefined
  readonly events: readonly Event[]
  readonly effects: readonly Effect[]
  readonly timers: readonly { readonly input: Input; readonly key: string | undefined; readonly due: Date }[]
  /** Keys of timers that were cancelled. */
  readonly cancelled: readonly string[]
  readonly rejections: readonly Rejection[]
  /** Afterwards. */
  readonly state: State
  readonly completed: boolean
  /** When the last of it was decided. */
  readonly now: Date
}

export interface Expected<State, Input, Event, Effect, Rejection> {
  readonly events?: readonly Event[]
  readonly effects?: readonly Effect[]
  /** As `decide` writes them: `after('24h', input, { key })`, counted from the last decision. */
  readonly timers?: readonly Timer<Input>[]
  readonly cancelled?: readonly string[]
  readonly rejected?: Rejection
  readonly outcome?: 'accepted' | 'rejected' | 'completed'
  readonly state?: State
  /** Whether it is over now. */
  readonly completed?: boolean
}

/** Throws an AssertionError with the difference. */
export function verify<S, I, E, F, R>(
  workflow: string,
  happened: Happened<S, I, E, F, R>,
  expected: Expected<S, I, E, F, R>,
): void {
  // The reason first: when an input was rejected, everything else is missing because of that.
  const rejections = 'rejected' in expected ? [expected.rejected] : []
  same(`${workflow}: rejections`, happened.rejections, rejections)
  const nowMs = happened.now.getTime()
  const timers = expected.timers?.map(({ input, key, due }) => ({
    input,
    key,
    due: 'afterMs' in due ? new Date(nowMs + due.afterMs) : due.at,
  }))
  const wanted = { ...expected, ...(timers ? { timers } : {}) }
  for (const name of ['outcome', 'events', 'effects', 'timers', 'cancelled', 'completed'] as const) {
    if (wanted[name] !== undefined) same(`${workflow}: ${name}`, happened[name], wanted[name])
  }
  if (expected.state !== undefined) compare(`${workflow}: state`, happened.state, expected.state)
  // Silence about an input that came too late would pass for success.
  if (expected.outcome === undefined && happened.outcome === 'completed') {
    throw new AssertionError({
      message: `${workflow} was over already when the input came. Expect it with { outcome: 'completed' }.`,
      actual: happened.outcome,
      expected: 'accepted',
    })
  }
}

/** The effect in the list that equals the one named. */
export function findEffect<F>(workflow: string, effects: readonly F[], effect: F): F {
  const stored = toStored(effect)
  const found = effects.find((one) => isDeepStrictEqual(one, stored))
  if (found !== undefined) return found
  throw new AftercommitError(
    'BAD_OPTION',
    `Workflow "${workflow}" has no such effect to be done in this story, so nothing was played. ` +
      `${effects.length} wait${effects.length === 1 ? 's' : ''}; look at \`effects\`.`,
  )
}

/** Both sides as they would be stored: a field that is undefined is none. */
function same(what: string, actual: unknown, expected: unknown): void {
  compare(what, toStored(actual), toStored(expected))
}

function compare(what: string, actual: unknown, expected: unknown): void {
  try {
    deepStrictEqual(actual, expected)
  } catch (error) {
    if (!(error instanceof AssertionError)) throw error
    throw new AssertionError({ message: `${what} differ from what was expected.\n${error.message}`, actual, expected })
  }
}
