/** What becomes of a call that a sink rejected. Pure: no clock, no sink. */
import { backoffDelay, type RetryPolicy } from '../runtime/index.ts'
import { isUnavailable } from './sink.ts'
import { GiveUp, RetryAfter } from './words.ts'

export type PublishVerdict =
  /** The same messages again. `counts`: it may have been the fault of one of them. */
  | { readonly kind: 'wait'; readonly delayMs: number; readonly counts: boolean }
  /** One by one, to find out which of them it is. */
  | { readonly kind: 'separate' }

export interface FailedCalls {
  /** Calls with these messages that failed and counted, without this one. */
  readonly tries: number
  /** Calls in a row for which the sink was unavailable, without this one. */
  readonly outages: number
}

export function decidePublish(
  error: unknown,
  { tries, outages }: FailedCalls,
  policy: RetryPolicy,
  random: () => number = Math.random,
): PublishVerdict {
  if (isUnavailable(error)) return { kind: 'wait', delayMs: backoffDelay(outages + 1, policy, random), counts: false }
  if (error instanceof GiveUp || tries + 1 >= policy.maxAttempts) return { kind: 'separate' }
  const asked = error instanceof RetryAfter ? Math.min(error.delayMs, LONGEST_WAIT_MS) : undefined
  return { kind: 'wait', delayMs: asked ?? backoffDelay(tries + 1, policy, random), counts: true }
}

/** A sink may ask for ten years; a day is enough. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000
