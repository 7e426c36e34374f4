/** What a run is made of: drawn from its seed, so that runs differ in everything that may matter. */
import type { Random } from './random.ts'

export interface SubscriptionPlan {
  readonly id: string
  readonly onFailure: 'park' | 'skip'
  readonly concurrency: number
  readonly checkpoint: 'coalesced' | 'sync' | { readonly every: number; readonly within: string }
  /** Actions of an observer; 0 for a plain subscription. */
  readonly actions: number
  /** Each action runs in the order of the key of its events. */
  readonly isOrdered: boolean
  /** Calls of actions at a time in a process. */
  readonly places: number
  /** Events that have begun and are in no committed checkpoint, at most. */
  readonly mostUnsaved: number
}

/** Rates are chances of one statement. */
export interface PathPlan {
  readonly latencyMs: number
  /** How much longer a few statements take. */
  readonly jitterMs: number
  readonly lostQuestions: number
  readonly lostAnswers: number
  /** The client hears of a lost connection, and the server executes the statement later all the same. */
  readonly late: number
  readonly refused: number
  /** The process is killed in the moment in which it sends a statement. */
  readonly deadly: number
  /** Pages of the log that the process has at hand. */
  readonly recent: number
}

const FAULTS = [
  'kill',
  'vanish',
  'pause',
  'long pause',
  'cut',
  'outage',
  'server restart',
  'lost lock',
  'restart',
] as const

export type Fault = (typeof FAULTS)[number]

export interface Plan {
  readonly events: number
  readonly spacingMs: number
  readonly keys: number
  readonly processes: number
  readonly subscriptions: readonly SubscriptionPlan[]
  readonly path: PathPlan
  readonly faults: readonly Fault[]
  readonly faultEveryMs: number
  readonly faultCount: number
  /** Paths lose and refuse statements at least for so long. */
  readonly troubleMs: number
  /** Chances of one event. */
  readonly fates: {
    readonly atOnce: number
    readonly flaky: number
    readonly slow: number
    readonly hanging: number
    /** At most so many of a run. */
    readonly poison: number
    readonly deadly: number
    readonly refusedContent: number
  }
}

export function drawPlan(random: Random): Plan {
  const rate = (most: number) => (random.chance(0.5) ? random.next() * most : 0)
  const subscriptions = [drawSubscription(random, 'plain', 0)]
  if (random.chance(0.7)) subscriptions.push(drawSubscription(random, 'observers', random.whole(1, 3)))
  return {
    events: random.whole(5, 150),
    spacingMs: random.pick([0.2, 2, 20, 200]),
    keys: random.whole(1, 10),
    processes: random.whole(1, 3),
    subscriptions,
    path: {
      latencyMs: random.pick([0.2, 1, 5, 40]),
      jitterMs: random.pick([0, 10, 300, 5_000]),
      lostQuestions: rate(0.1),
      lostAnswers: rate(0.1),
      late: rate(0.05),
      refused: rate(0.1),
      deadly: rate(0.005),
      recent: random.pick([0, 0.5, 1]),
    },
    faults: FAULTS.filter(() => random.chance(0.4)),
    faultEveryMs: random.pick([20, 500, 5_000]),
    faultCount: random.whole(0, 12),
    troubleMs: random.pick([0, 5_000, 60_000]),
    fates: {
      atOnce: random.next(),
      flaky: rate(0.3),
      slow: rate(0.1),
      hanging: rate(0.03),
      poison: random.pick([0, 0, 1, 3]),
      deadly: random.pick([0, 0, 0, 1]),
      refusedContent: rate(0.2),
    },
  }
}

export function drawSubscription(random: Random, id: string, actions: number): SubscriptionPlan {
  return {
    id,
    onFailure: actions > 0 ? 'skip' : random.pick(['park', 'skip'] as const),
    concurrency: actions > 0 ? random.pick([1, 16, 256]) : random.pick([1, 1, 4, 16]),
    checkpoint: actions > 0 ? 'coalesced' : random.pick(['coalesced', 'sync', { every: 10, within: '100ms' }] as const),
    actions,
    isOrdered: actions > 0 && random.chance(0.5),
    places: random.pick([1, 3, 20]),
    mostUnsaved: actions > 0 ? random.pick([4, 16, 256]) : Number.POSITIVE_INFINITY,
  }
}
