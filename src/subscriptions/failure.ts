/**
 * Decides what follows a failed attempt. Pure: no clock, no database. A failure is one of these:
 *
 *   the event's          counts as an attempt: whatever the handler threw, a timeout of its own statement included
 *   a conflict           40001 and 40P01: the other transaction had its part; counts from the tenth in a row on
 *   the server's or the  connections, shutdowns, a full disk: everybody meets them, so they do not count, unless this
 *   path's               process has committed something since the same event met one before
 *   ours                 a statement of ours around the handler: BEGIN, checkpoint, COMMIT
 *   the destination's    it takes nothing from anybody (relays): not the event's, so it does not count
 *
 * Conflicts, the server's and ours are called faults here. What does not count is repeated at growing distances.
 */
import { AftercommitError } from '../errors.ts'
import { type Committed, classify, isRepeatable, isServerFault, isStorageFault, sqlstateOf } from '../postgres/index.ts'
import { backoffDelay, LONGEST_ASKED_MS, type RetryPolicy } from '../runtime/index.ts'
import { type Advice, GiveUp, NotNow, RetryAfter } from './words.ts'

export type Verdict =
  /** `counts`: it was an attempt. `isFault`: the database or the path to it may have had a part. */
  | { readonly kind: 'retry'; readonly delayMs: number; readonly counts: boolean; readonly isFault: boolean }
  /** `hopeless`: no number of attempts would have helped. */
  | { readonly kind: 'dead'; readonly hopeless: boolean }

export interface FailedTry {
  readonly error: unknown
  /** Attempts so far that counted, this one included. */
  readonly attempt: number
  /** Faults in a row before this failure. */
  readonly faults: number
  /** The handler threw the error. False: a statement of ours before or after the handler failed. */
  readonly byHandler: boolean
  /** The connection of the transaction in which the handler ran was lost: nothing of it happened. */
  readonly connectionLost: boolean
  /** What a destination said, where the error comes from one. */
  readonly advice?: Advice | undefined
  /** By this process, between the fault before and the beginning of this attempt. */
  readonly committed: Committed
}

/** Nothing more is begun until the delay is over. */
export interface Unavailable {
  readonly kind: 'unavailable'
  readonly delayMs: number
}

/**
 * The same for a subscription whose events all go to one destination. `outages`: calls in a row for which it was
 * unavailable, without this one; undefined if it was available.
 */
export function decideCall(
  failed: FailedTry,
  outages: number | undefined,
  policy: RetryPolicy,
  random: () => number = Math.random,
): Verdict | Unavailable {
  const verdict = decideFailure(failed, policy, random)
  if (outages === undefined || (verdict.kind === 'dead' && verdict.hopeless)) return verdict
  const delayMs = delayAfter(failed.error, failed.advice, backoffDelay(outages + 1, policy, random))
  return { kind: 'unavailable', delayMs }
}

export function decideFailure(failed: FailedTry, policy: RetryPolicy, random: () => number = Math.random): Verdict {
  const { error, attempt, faults, advice } = failed
  if (error instanceof NotNow) return { kind: 'retry', delayMs: error.delayMs, counts: false, isFault: false }
  if (advice?.local)
    return { kind: 'retry', delayMs: backoffDelay(1, LOCAL_DELAY, random), counts: false, isFault: false }
  if (error instanceof GiveUp || isHopeless(error) || advice?.transient === false)
    return { kind: 'dead', hopeless: true }
  const fault = faultOf(failed)
  const isFault = fault !== undefined
  if (isFault && !isCounted(fault, failed))
    return { kind: 'retry', delayMs: backoffDelay(faults + 1, FAULT_BACKOFF, random), counts: false, isFault }
  if (attempt >= policy.maxAttempts) return { kind: 'dead', hopeless: false }
  const delayMs = delayAfter(error, advice, backoffDelay(attempt, policy, random))
  return { kind: 'retry', delayMs, counts: true, isFault }
}

/** A handler knows best when to come back. A destination may ask for more patience than the policy has, never for less. */
function delayAfter(error: unknown, advice: Advice | undefined, byPolicyMs: number): number {
  if (error instanceof RetryAfter) return Math.min(error.delayMs, LONGEST_ASKED_MS)
  return Math.max(byPolicyMs, Math.min(advice?.retryAfterMs ?? 0, LONGEST_ASKED_MS))
}

/** Between attempts while this host lacks something. */
const LOCAL_DELAY = { strategy: 'fixed', initialMs: 5_000, maxMs: 6_250 } as const
const FAULT_BACKOFF = { strategy: 'exponential', initialMs: 100, maxMs: 10_000 } as const
/** The first fault in a row that may count without other evidence; by then about 30 s have passed. */
const FIRST_COUNTED = 10

/** No number of attempts changes what was stored. */
export function isHopeless(error: unknown): boolean {
  return (error instanceof AftercommitError && HOPELESS.has(error.code)) || sqlstateOf(error) === TOO_DEEP
}

/** The SQLSTATE of the SQL function `emit`. */
const TOO_DEEP = 'AC006'

const HOPELESS: ReadonlySet<string> = new Set(['UPCAST_FAILED', 'UNAUTHORIZED', 'UNDECODABLE', 'TOO_DEEP'])

type Fault = 'conflict' | 'server' | 'refused'

/** `refused`: the server refused a statement of ours for a reason that may lie in what the handler wrote before. */
function faultOf({ error, byHandler, connectionLost }: FailedTry): Fault | undefined {
  if (error instanceof AftercommitError) {
    return FAULTS.has(error.code) || (!byHandler && error.code === 'POOL_EXHAUSTED') ? 'server' : undefined
  }
  if (isRepeatable(error)) return 'conflict'
  if (isServerFault(error)) return 'server'
  const kind = classify(error)
  // A handler may throw the lost connection of another service: that is its own failure.
  if (sqlstateOf(error) === undefined) {
    return kind === 'connection' && (connectionLost || !byHandler) ? 'server' : undefined
  }
  return byHandler || kind === 'permanent' ? undefined : 'refused'
}

const FAULTS: ReadonlySet<string> = new Set(['DATABASE_UNREACHABLE', 'OUTCOME_UNKNOWN', 'LEASE_LOST'])

function isCounted(fault: Fault, { error, faults, byHandler, committed }: FailedTry): boolean {
  const isTenth = faults + 1 >= FIRST_COUNTED
  switch (fault) {
    case 'conflict':
      return isTenth
    case 'refused':
      return isTenth && committed === 'work'
    case 'server':
      if (!byHandler) return false
      // A full disk still takes commits that fit into pages which exist already.
      return (committed === 'work' && !isStorageFault(error)) || (isTenth && committed !== 'nothing')
  }
}
