/** What becomes of a failed attempt. Pure: no clock, no database. */
import { AftercommitError, type ErrorCode } from '../errors.ts'
import type { RetryPolicy } from '../runtime/index.ts'
import { decideFailure, type FaultStreak, streakFields, type Verdict } from '../subscriptions/index.ts'

export interface FailedAttempt {
  readonly error: unknown
  /** Counts from 1. */
  readonly attempt: number
  /** Of this delivery before this failure. */
  readonly streak?: FaultStreak | undefined
  /** The work threw the error. False: a statement of ours after the work failed. */
  readonly byWork?: boolean
}

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
  /** This host was at fault, before anything was sent: no descriptor, no memory, no name server. Not an attempt. */
  readonly local?: boolean
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
  { error, attempt, streak, byWork = true }: FailedAttempt,
  policy: RetryPolicy,
  random: () => number = Math.random,
): Verdict {
  if (error instanceof NotNow) return { kind: 'retry', delayMs: error.delayMs, counts: false, isFault: false }
  const { transient, retryAfterMs, local } = tellingOf(error)
  if (local === true) {
    const delayMs = LOCAL_DELAY_MS * (0.75 + random() / 2)
    return { kind: 'retry', delayMs, counts: false, isFault: false }
  }
  if (transient === false) return { kind: 'dead', hopeless: true }
  const failed = { error, attempt, byHandler: byWork, connectionLost: false, ...streakFields(streak) }
  const verdict = decideFailure(failed, policy, random)
  if (verdict.kind === 'dead') return verdict
  if (!verdict.counts || retryAfterMs === undefined) return verdict
  // A destination may ask for more patience than the policy has, never for less.
  return { ...verdict, delayMs: Math.max(verdict.delayMs, Math.min(retryAfterMs, LONGEST_PATIENCE_MS)) }
}

/** Between attempts while this host lacks something. */
const LOCAL_DELAY_MS = 5_000
const LONGEST_PATIENCE_MS = 24 * 60 * 60 * 1_000

export function tellingOf(error: unknown): Telling {
  return typeof error === 'object' && error !== null ? (error as Telling) : {}
}

/** Whether the destination is to blame: it did not answer, or said that it cannot now. */
export function isDestinationFault(error: unknown): boolean {
  const { transient, single, local } = tellingOf(error)
  if (single === true || local === true) return false
  return transient === true || (error as { code?: string } | null)?.code === 'TIMED_OUT'
}
