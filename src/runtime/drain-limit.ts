/** One limit for all that a stop waits for, one part after the other: together they take no longer than was said. */
import type { Clock } from './clock.ts'

export interface DrainLimit {
  /** From now on. */
  begin(): void
  /** Never nothing: whoever comes last still has to say what it gives back. */
  leftMs(): number
}

const LEAST_MS = 100

export function createDrainLimit(clock: Clock, ms: number): DrainLimit {
  let end: number | undefined
  return {
    begin() {
      end = clock.monotonic() + ms
    },
    leftMs: () => Math.max(end === undefined ? ms : end - clock.monotonic(), Math.min(ms, LEAST_MS)),
  }
}
