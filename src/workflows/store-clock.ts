/** The clock of the database, between its answers: the last one plus what has passed here since. Never ahead of it. */
import type { Clock } from '../runtime/index.ts'

export interface StoreClock {
  /** The database answered with its time. */
  answered(ms: number): void
  /** Undefined: no answer is young enough to go by. */
  nowMs(): number | undefined
}

/** Two clocks drift apart by less than a tenth of a millisecond in this time. */
const OLDEST_ANSWER_MS = 1_000

export function createStoreClock(clock: Pick<Clock, 'monotonic'>): StoreClock {
  let last = { ms: 0, at: Number.NEGATIVE_INFINITY }
  return {
    answered(ms) {
      last = { ms, at: clock.monotonic() }
    },
    nowMs() {
      const since = clock.monotonic() - last.at
      return since <= OLDEST_ANSWER_MS ? Math.floor(last.ms + since) : undefined
    },
  }
}
