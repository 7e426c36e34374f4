/** Faults in a row of one event or delivery, and what this process committed between them. */
import { type Commits, type Committed, committedBetween } from '../postgres/index.ts'
import type { Verdict } from './failure.ts'

export class FaultStreak {
  /** Faults in a row so far. */
  count = 1
  /** Between the last fault and the beginning of the attempt under way. */
  committed: Committed = 'nothing'
  #atLastFault: Commits

  constructor(commits: Readonly<Commits>) {
    this.#atLastFault = { ...commits }
  }

  /** Another attempt begins. */
  begin(commits: Readonly<Commits>): void {
    this.committed = committedBetween(this.#atLastFault, commits)
  }

  fail(commits: Readonly<Commits>): void {
    this.count++
    this.#atLastFault = { ...commits }
  }
}

/** The streak after a failure; undefined when that failure was no fault. */
export function afterFailure(
  streak: FaultStreak | undefined,
  verdict: Verdict,
  commits: Readonly<Commits>,
): FaultStreak | undefined {
  if (verdict.kind !== 'retry' || !verdict.isFault) return undefined
  if (streak === undefined) return new FaultStreak(commits)
  streak.fail(commits)
  return streak
}

/** The part of `FailedTry` that a streak knows. */
export function streakFields(streak: FaultStreak | undefined): { faults: number; committed: Committed } {
  return { faults: streak?.count ?? 0, committed: streak?.committed ?? 'nothing' }
}
