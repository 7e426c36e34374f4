/** What becomes of a failed try. Pure: no clock, no database. */
import { AftercommitError } from '../errors.ts'
import { classify, sqlstateOf } from '../postgres/index.ts'
import { backoffDelay, type RetryPolicy } from '../runtime/index.ts'
import { GiveUp, RetryAfter } from './words.ts'

export type Verdict =
  /** `counts`: it was a try of the handler, not a fault of the database between us. */
  | { readonly kind: 'retry'; readonly delayMs: number; readonly counts: boolean }
  /** `hopeless`: no number of tries would have helped. */
  | { readonly kind: 'dead'; readonly hopeless: boolean }

export interface FailedTry {
  readonly error: unknown
  /** Tries so far that counted, this one included. */
  readonly attempt: number
  /** Tries in a row that did not count. */
  readonly faults: number
  /** The handler ran in our transaction, so a lost connection was ours. */
  readonly transactional: boolean
}

export function decideFailure(failed: FailedTry, policy: RetryPolicy, random: () => number = Math.random): Verdict {
  const { error, attempt, faults } = failed
  if (error instanceof GiveUp || isHopeless(error)) return { kind: 'dead', hopeless: true }
  if (isDatabaseFault(failed))
    return { kind: 'retry', delayMs: backoffDelay(faults + 1, FAULT_BACKOFF, random), counts: false }
  if (attempt >= policy.maxAttempts) return { kind: 'dead', hopeless: false }
  const delayMs =
    error instanceof RetryAfter ? Math.min(error.delayMs, LONGEST_WAIT_MS) : backoffDelay(attempt, policy, random)
  return { kind: 'retry', delayMs, counts: true }
}

/** A destination may ask for ten years; a day is enough. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000
const FAULT_BACKOFF = { strategy: 'exponential', initialMs: 100, maxMs: 10_000 } as const

/** No number of tries changes what was stored. */
export function isHopeless(error: unknown): boolean {
  return (error instanceof AftercommitError && HOPELESS.has(error.code)) || sqlstateOf(error) === TOO_DEEP
}

/** As the SQL function `emit` says it. */
const TOO_DEEP = 'AC006'

const HOPELESS: ReadonlySet<string> = new Set(['UPCAST_FAILED', 'UNAUTHORIZED', 'UNDECODABLE', 'TOO_DEEP'])

/** Deadlocks, serialisation failures, a server that goes away: the event had no part in it. */
function isDatabaseFault({ error, transactional }: FailedTry): boolean {
  if (error instanceof AftercommitError) return FAULTS.has(error.code)
  if (sqlstateOf(error) !== undefined) return classify(error) !== 'permanent'
  return transactional && classify(error) === 'connection'
}

const FAULTS: ReadonlySet<string> = new Set(['DATABASE_UNREACHABLE', 'OUTCOME_UNKNOWN', 'POOL_EXHAUSTED', 'LEASE_LOST'])
