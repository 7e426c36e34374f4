import { type Clock, sleepBy } from '../../../src/runtime/clock.ts'
import { systemClock } from '../../../src/runtime/index.ts'

export interface HeldTimers {
  readonly clock: Clock
  /** How many are running. */
  readonly count: number
  /** Their time is up. */
  fire(): void
}

/**
 * A clock on which timers of one length run until the test says so: what comes before and what comes after does not
 * depend on how busy the machine is. The length should be one that nothing else waits for.
 */
export function heldTimers(heldMs: number, clock: Clock = systemClock): HeldTimers {
  const held = new Set<{ callback: () => void }>()
  const setTimer: Clock['setTimer'] = (ms, callback) => {
    if (ms !== heldMs) return clock.setTimer(ms, callback)
    const timer = { callback }
    held.add(timer)
    return () => void held.delete(timer)
  }
  return {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => sleepBy(setTimer, ms, signal),
      setTimer,
    },
    get count() {
      return held.size
    },
    fire() {
      const due = [...held]
      held.clear()
      for (const { callback } of due) callback()
    },
  }
}
