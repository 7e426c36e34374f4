/** What becomes of a failed attempt. Pure: no clock, no database. */
import { AftercommitError, type ErrorCode } from '../errors.ts'
import type { RetryPolicy } from '../runtime/index.ts'
import { decideFailure } from '../subscriptions/index.ts'

export type Outcome =
  /** `counts`: it was an attempt of the work, not a fault of the database between us. */
  { readonly kind: 'retry'; readonly delayMs: number; readonly counts: boolean } | { readonly kind: 'dead' }

/** What an error may say of itself beyond its class. Whoever calls other people's services knows. */
export interface Telling {
  /** False: no number of attempts would help. */
  readonly transient?: boolean
  /** The destination asked for this much patience. */
  readonly retryAfterMs?: number
  /** The destination said that it will never come back. */
  readonly gone?: boolean
  /** It concerns one of many behind the destination: others that go there are not held back for it. */
  readonly single?: boolean
}

/** Thrown by work that is not to be done now, or not here: it costs no attempt, and comes again after a while. */
export class NotNow extends AftercommitError {
  readonly delayMs: number

  constructor(code: ErrorCode, message: string, delayMs: number, options?: ErrorOptions) {
    super(code, message, options)
    this.delayMs = delayMs
  }
}

export function decideOutcome(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: () => number = Math.random,
): Outcome {
  if (error instanceof NotNow) return { kind: 'retry', delayMs: error.delayMs, counts: false }
  const { transient, retryAfterMs } = tellingOf(error)
  if (transient === false) return { kind: 'dead' }
  const verdict = decideFailure({ error, attempt, faults: 0, transactional: false }, policy, random)
  if (verdict.kind === 'dead') return { kind: 'dead' }
  if (!verdict.counts || retryAfterMs === undefined) return verdict
  // A destination may ask for more patience than the policy has, never for less.
  return { ...verdict, delayMs: Math.max(verdict.delayMs, Math.min(retryAfterMs, LONGEST_PATIENCE_MS)) }
}

const LONGEST_PATIENCE_MS = 24 * 60 * 60 * 1_000

export function tellingOf(error: unknown): Telling {
  return typeof error === 'object' && error !== null ? (error as Telling) : {}
}

/** Whether the destination is to blame: it did not answer, or said that it cannot now. */
export function isDestinationFault(error: unknown): boolean {
  const { transient, single } = tellingOf(error)
  if (single === true) return false
  return transient === true || (error as { code?: string } | null)?.code === 'TIMED_OUT'
}
