import { type Clock, systemClock } from '../../../src/runtime/index.ts'

/**
 * A clock on which everything is due sooner: what waits for ten seconds waits for one. Heartbeats, checks and upkeep of
 * a real process are met within a test.
 */
export function hurriedClock(times: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic() * times,
    sleep: (ms, signal) => systemClock.sleep(ms / times, signal),
    setTimer: (ms, callback) => systemClock.setTimer(ms / times, callback),
  }
}

/** Intervals are measured in a hurry and waits take as long as they say: states change soon, polls stay rare. */
export function impatientClock(times: number): Clock {
  return { ...systemClock, monotonic: () => systemClock.monotonic() * times }
}

/** One whose intervals can be made to stand still while waits go on. */
export function pausableClock(): Clock & { pause(): void; goOn(): void } {
  let stoodAt: number | undefined
  return {
    ...systemClock,
    monotonic: () => stoodAt ?? systemClock.monotonic(),
    pause() {
      stoodAt = systemClock.monotonic()
    },
    goOn() {
      stoodAt = undefined
    },
  }
}
