import { setImmediate } from 'node:timers/promises'
import { type Clock, checkDelay, sleepBy } from './clock.ts'

/** A clock that stands still until it is told to move. Time is virtual: a test of an hour takes no time. */
export interface TestClock extends Clock {
  /**
   * Moves time by `ms`, stopping at every timer that comes due, in order, and letting the promises it resolved run
   * before the next one. Timers set on the way fire too when they are due. Work that does real input or output is not
   * waited for.
   */
  advance(ms: number): Promise<void>
  /** Moves wall time alone, forward or back, as an operator or NTP would; timers do not notice. */
  jump(ms: number): void
  /** How many timers are set: a test that ends with more than it began with has found a leak. */
  readonly timers: number
}

export function createTestClock({ now = new Date('2026-01-01T00:00:00Z') }: { now?: Date } = {}): TestClock {
  const timers = new Map<number, { due: number; callback: () => void }>()
  let lastId = 0
  let elapsed = 0
  let wallOffset = now.getTime()

  const setTimer = (ms: number, callback: () => void) => {
    const id = ++lastId
    timers.set(id, { due: elapsed + checkDelay(ms), callback })
    return () => {
      timers.delete(id)
    }
  }

  const fireNext = (until: number): boolean => {
    let next: number | undefined
    // Ids grow, so among timers due at the same moment the one set first wins.
    for (const [id, { due }] of timers) {
      if (due <= until && (next === undefined || due < timers.get(next)!.due)) next = id
    }
    if (next === undefined) return false
    const { due, callback } = timers.get(next)!
    timers.delete(next)
    elapsed = due
    callback()
    return true
  }

  return {
    now: () => new Date(wallOffset + elapsed),
    monotonic: () => elapsed,
    sleep: (ms, signal) => sleepBy(setTimer, ms, signal),
    setTimer,
    async advance(ms) {
      const until = elapsed + ms
      do {
        await setImmediate()
      } while (fireNext(until))
      elapsed = until
    },
    jump(ms) {
      wallOffset += ms
    },
    get timers() {
      return timers.size
    },
  }
}
