import { AftercommitError } from '../errors.ts'
import type { Clock } from './clock.ts'
import { formatDuration } from './duration.ts'

/**
 * The promise, or a rejection with the signal's reason, whichever comes first. What the promise does later is nobody's
 * business: its rejection is never unhandled. Unlike `Promise.race` nothing stays attached to a long-lived signal.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    settle(promise, resolve, reject, () => signal.removeEventListener('abort', onAbort))
  })
}

/** The promise, or a rejection with whatever `onDeadline` gives after `ms`. The work itself goes on. */
export function withDeadline<T>(
  promise: PromiseLike<T>,
  ms: number,
  clock: Clock,
  onDeadline: () => unknown,
): Promise<T> {
  return new Promise((resolve, reject) => {
    settle(
      promise,
      resolve,
      reject,
      clock.setTimer(ms, () => reject(onDeadline())),
    )
  })
}

/**
 * The promise, or a `TIMED_OUT` error after `ms`. The work itself goes on: give it an AbortSignal if it can be ended.
 * `what` opens the message: `Loop "tailer" did not end` becomes `Loop "tailer" did not end within 30 s.`
 */
export function withTimeout<T>(promise: Promise<T>, ms: number, clock: Clock, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(ms, () => {
      reject(new AftercommitError('TIMED_OUT', `${what} within ${formatDuration(ms)}.`))
    })
    settle(promise, resolve, reject, cancel)
  })
}

function settle<T>(
  promise: PromiseLike<T>,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
  cleanUp: () => void,
): void {
  promise.then(
    (value) => {
      cleanUp()
      resolve(value)
    },
    (error) => {
      cleanUp()
      reject(error)
    },
  )
}
