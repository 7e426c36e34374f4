/** Whether there is a server to work with: reachable, willing, and new enough. */
import { AftercommitError } from '../errors.ts'
import { createThrottledLog, retryUntil } from '../runtime/index.ts'
import type { Database } from './database.ts'
import type { Queryable } from './queryable.ts'
import { classify, sqlstateOf } from './sqlstate.ts'
import { selectServerVersion } from './statements.ts'

const OLDEST_SERVER = 14

export interface WaitOptions {
  signal?: AbortSignal
  /** Gives up after this many tries; by default never, so that a process may be started before its database. */
  attempts?: number
  onRetry?: (error: unknown, attempt: number) => void
}

/**
 * Resolves when the database answers. A server that is down, full, starting or in recovery is waited for; one that
 * refuses us (wrong password, no such database) or is too old never gets better by waiting, so that is thrown.
 */
export async function waitUntilReachable(db: Database, options: WaitOptions = {}): Promise<void> {
  const { signal, attempts = Number.POSITIVE_INFINITY, onRetry } = options
  const log = createThrottledLog({ logger: db.logger, clock: db.clock })
  await retryUntil(() => assertServerVersion(db.control), {
    clock: db.clock,
    signal,
    mayRetry: (error, attempt) => classify(error) !== 'permanent' && attempt < attempts,
    onRetry(error, attempt) {
      onRetry?.(error, attempt)
      log('warn', sqlstateOf(error) ?? 'connection', { err: error, attempt }, 'the database is not reachable yet')
    },
  })
}

export async function assertServerVersion(db: Queryable): Promise<void> {
  const version = await selectServerVersion(db)
  const major = Math.floor(version / 10_000)
  if (major >= OLDEST_SERVER) return
  throw new AftercommitError(
    'SERVER_TOO_OLD',
    `The server runs PostgreSQL ${major}, and aftercommit needs ${OLDEST_SERVER} or newer. Nothing was done; ` +
      'upgrade the server or point aftercommit at another one.',
  )
}
