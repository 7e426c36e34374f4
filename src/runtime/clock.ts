import { performance } from 'node:perf_hooks'
import { AftercommitError } from '../errors.ts'

/**
 * Where this library gets its time from, so that a test can move it. Due times and leases follow the clock of the
 * database, never this one: hosts disagree by minutes, and their wall clocks jump.
 */
export interface Clock {
  /** Wall time of this host, for people and log lines. */
  now(): Date
  /** Milliseconds from an arbitrary start. Never jumps, so every interval is measured with it. */
  monotonic(): number
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls back once after `ms` (`Infinity`: never). The returned function cancels and may be called at any time. */
  setTimer(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleepBy(setSystemTimer, ms, signal),
  setTimer: setSystemTimer,
}

/** A sleep made of a timer; it leaves neither a timer nor a listener behind, however it ends. */
export function sleepBy(setTimer: Clock['setTimer'], ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const onAbort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = setTimer(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

export function checkDelay(ms: number): number {
  if (Number.isNaN(ms)) {
    throw new AftercommitError('BAD_OPTION', 'A timer was asked to wait for NaN ms, so it was not set. Pass a number.')
  }
  return Math.max(0, ms)
}

// Node fires a timer of more than 2^31 - 1 ms at once, so a longer one is a chain of timers.
const LONGEST_TIMER_MS = 2 ** 31 - 1

function setSystemTimer(ms: number, callback: () => void): () => void {
  let left = checkDelay(ms)
  let timer: NodeJS.Timeout
  const arm = () => {
    const chunk = Math.min(left, LONGEST_TIMER_MS)
    left -= chunk
    timer = setTimeout(() => (left > 0 ? arm() : callback()), chunk)
  }
  arm()
  return () => clearTimeout(timer)
}
