import { abortable, type Backoff, backoffDelay, type Clock, retryUntil, systemClock } from '../runtime/index.ts'
import { isRepeatable } from './sqlstate.ts'

export interface RepeatOptions {
  attempts?: number
  clock?: Clock
  signal?: AbortSignal
  random?: () => number
}

const BACKOFF: Backoff = { strategy: 'exponential', initialMs: 20, maxMs: 1_000, jitter: 0.5 }

/**
 * Runs a whole transaction again when Postgres gave it up in favour of another one (40001, 40P01). `work` must contain
 * the transaction and nothing whose effect outlives a rollback. A lost COMMIT is not repeated: it may have happened.
 */
export async function withRetry<T>(
  work: (attempt: number) => Promise<T>,
  { attempts = 5, clock = systemClock, signal, random = Math.random }: RepeatOptions = {},
): Promise<T> {
  return retryUntil((attempt) => (signal ? abortable(work(attempt), signal) : work(attempt)), {
    clock,
    signal,
    mayRetry: (error, attempt) => attempt < attempts && isRepeatable(error),
    delay: (attempt) => backoffDelay(attempt, BACKOFF, random),
  })
}
