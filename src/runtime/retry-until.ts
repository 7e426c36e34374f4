import { reconnectDelay } from './backoff.ts'
import type { Clock } from './clock.ts'

export interface RetryUntilOptions {
  readonly clock: Clock
  /** Looked at after a failure. Once it has fired, nothing is repeated. */
  readonly signal?: AbortSignal | undefined
  /** False throws the error. `attempt` counts from 1. Default: every error is retried. */
  readonly mayRetry?: (error: unknown, attempt: number) => boolean
  /** Milliseconds after attempt number `attempt`. Default: as after a lost connection. */
  readonly delay?: (attempt: number, error: unknown) => number
  readonly onRetry?: (error: unknown, attempt: number, delayMs: number) => void
}

/**
 * Repeats work until it succeeds, with a growing delay. Only for work that may happen more than once. When the signal ends
 * it, the promise rejects with the last error or, during a delay, with the reason of the signal.
 */
export async function retryUntil<T>(work: (attempt: number) => T | Promise<T>, options: RetryUntilOptions): Promise<T> {
  const { clock, mayRetry = () => true, delay = (attempt) => reconnectDelay(attempt), onRetry } = options
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (options.signal?.aborted || !mayRetry(error, attempt)) throw error
      const delayMs = delay(attempt, error)
      onRetry?.(error, attempt, delayMs)
      await clock.sleep(delayMs, options.signal)
    }
  }
}
