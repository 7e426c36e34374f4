/** The verdict on a failed attempt, and whether its destination is to blame. Pure: no clock, no database. */
import type { RetryPolicy } from '../runtime/index.ts'
import { adviceOf, decideFailure, type FaultStreak, streakFields, type Verdict } from '../subscriptions/index.ts'

export interface FailedAttempt {
  readonly error: unknown
  /** Counts from 1. */
  readonly attempt: number
  /** Of this delivery before this failure. */
  readonly streak?: FaultStreak | undefined
  /** The work threw the error. False: a statement of ours after the work failed. */
  readonly byWork?: boolean
}

export function decideOutcome(
  { error, attempt, streak, byWork = true }: FailedAttempt,
  policy: RetryPolicy,
  random: () => number = Math.random,
): Verdict {
  const failed = { error, attempt, byHandler: byWork, connectionLost: false, advice: adviceOf(error) }
  return decideFailure({ ...failed, ...streakFields(streak) }, policy, random)
}

/** Whether the destination is to blame: it did not answer, or said that it cannot now. */
export function isDestinationFault(error: unknown): boolean {
  const { transient, single, local } = adviceOf(error)
  if (single === true || local === true) return false
  return transient === true || (error as { code?: string } | null)?.code === 'TIMED_OUT'
}
