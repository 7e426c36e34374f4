/**
 * Everything this library needs of one database: a pool for work, a small reserved pool so that busy handlers can never
 * keep heartbeats and checkpoints waiting, and single connections past the pooler. Opening one connects to nothing;
 * connections are made on first use and made anew, resolving the host again, whenever they are lost.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { AftercommitError } from '../errors.ts'
import { type Clock, type Logger, redacting, silentLogger, systemClock } from '../runtime/index.ts'
import { type Commits, createCommits } from './commits.ts'
import type { ConnectionSettings, Role, TargetSource } from './driver.ts'
import { type SchemaName, schemaName } from './identifiers.ts'
import { shareIdentity } from './identity.ts'
import { createPool, type Pool, type PoolStats } from './pool.ts'
import { openSession, type Session } from './session.ts'
import { selectActiveBackends } from './statements.ts'

export interface DatabaseOptions {
  database: TargetSource
  /** Past a transaction-mode pooler, for LISTEN, session locks and migrations. The same as `database` by default. */
  directDatabase?: TargetSource
  schema?: string
  ssl?: boolean | TlsOptions
  /** Shown in pg_stat_activity behind the role; host and process id by default. */
  applicationName?: string
  /** Connections for work. */
  poolSize?: number
  /** Connections that are never lent to handlers. */
  controlPoolSize?: number
  /** For making a connection, and for waiting until one of the pool is free. */
  connectTimeoutMs?: number
  /** A statement without an answer for this long loses its connection. 0 waits for ever. */
  queryTimeoutMs?: number
  logger?: Logger
  clock?: Clock
  /** The trace that transactions tell the database about, for events that it writes; none by default. */
  currentTraceparent?: () => string | undefined
}

export interface Database extends Pool {
  readonly schemaName: SchemaName
  /** The reserved pool. For short statements of ours only, never for a user's function. */
  readonly control: Pool
  /** A connection of its own to the direct address. The caller ends it. */
  openSession(role: Role, options?: { queryTimeoutMs?: number }): Promise<Session>
  /** Counts of what this process has committed here. */
  readonly commits: Commits
  poolStats(): { work: PoolStats; control: PoolStats }
  readonly clock: Clock
  readonly logger: Logger
}

/** For the question which backends work: the server answers it from memory. */
const PROBE_MS = 3_000

export function createDatabase({
  database,
  directDatabase = database,
  schema = 'aftercommit',
  ssl,
  applicationName,
  poolSize = 10,
  controlPoolSize = 3,
  connectTimeoutMs = 10_000,
  queryTimeoutMs = 60_000,
  logger = silentLogger,
  clock = systemClock,
  currentTraceparent,
}: DatabaseOptions): Database {
  checkSize('poolSize', poolSize)
  checkSize('controlPoolSize', controlPoolSize)
  const name = schemaName(schema)
  const safeLogger = redacting(logger)
  const settings: ConnectionSettings = { target: database, ssl, applicationName, connectTimeoutMs, queryTimeoutMs }
  const commits = createCommits()
  const openOwn: Database['openSession'] = (role, options = {}) =>
    openSession({
      role,
      schema: name.quoted,
      settings: { ...settings, target: directDatabase, ...options },
      onHookError: (error) => safeLogger.error({ err: error }, 'an onCommit hook failed; the commit stands'),
    })
  const selectWorking = async (pids: readonly number[]) => {
    const session = await openOwn('probe', { queryTimeoutMs: PROBE_MS })
    try {
      return await selectActiveBackends(session, pids)
    } finally {
      session.destroy()
    }
  }
  const shared = {
    schema: name.quoted,
    settings,
    logger: safeLogger,
    clock,
    commits,
    currentTraceparent,
    selectWorking,
  }
  const work = createPool({ ...shared, role: 'work', size: poolSize })
  const control = createPool({ ...shared, role: 'control', size: controlPoolSize })
  shareIdentity(control, work)

  const db: Database = {
    ...work,
    schemaName: name,
    control,
    commits,
    openSession: openOwn,
    distrust() {
      work.distrust()
      control.distrust()
    },
    poolStats: () => ({ work: work.stats(), control: control.stats() }),
    async close(timeoutMs) {
      await Promise.all([work.close(timeoutMs), control.close(timeoutMs)])
    },
    clock,
    logger: safeLogger,
  }
  shareIdentity(db, work)
  return db
}

function checkSize(option: string, size: number): void {
  if (Number.isSafeInteger(size) && size > 0) return
  throw new AftercommitError('BAD_OPTION', `${option} must be a whole number of at least 1. Nothing was connected.`)
}
