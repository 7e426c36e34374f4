/**
 * A pool of connections for one role. It hands out sessions that are alive, outside any transaction and answer within
 * the query timeout; whatever cannot promise that any more is destroyed rather than returned.
 */
import type { Client, Pool as PgPool, PoolClient } from 'pg'
import { AftercommitError } from '../errors.ts'
import { type Clock, currentCause, formatDuration, type Logger, withTimeout } from '../runtime/index.ts'
import type { Commits } from './commits.ts'
import {
  type ConnectionSettings,
  clientConfig,
  describeTarget,
  destroyClient,
  loadDriver,
  type Role,
  runQueries,
  runQuery,
} from './driver.ts'
import { shareIdentity } from './identity.ts'
import { mayPrepare, runRepeated } from './prepared.ts'
import type { Parameter, Queryable, QueryOptions, QueryResult } from './queryable.ts'
import { endsSession, sqlstateOf } from './sqlstate.ts'
import { runTransaction, type Transaction, type TransactionOptions } from './transaction.ts'
import { type SelectWorking, tryConnections } from './trial.ts'
import { type DecideTrip, runTwoTrips, type Statement } from './two-trips.ts'

export interface Pool extends Queryable {
  /** Several statements without parameters in one round trip, one result each. No transaction control in the text. */
  queryMany(text: string): Promise<QueryResult<Record<string, unknown>>[]>
  transaction<T>(fn: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** A transaction in two round trips; see two-trips.ts. */
  twoTrips<First, Last>(first: Statement, decide: DecideTrip<First>): Promise<Last | undefined>
  /**
   * Another connection to the server went silent. Ends the connections that wait for use, and in the reserved pool each that
   * has been waiting for an answer for 5 s: all statements there are short. The others that wait are put on trial.
   */
  distrust(): void
  stats(): PoolStats
  /** Waits for the connections in use, at most `timeoutMs`, then destroys them. May be called twice. */
  close(timeoutMs?: number): Promise<void>
}

export interface PoolStats {
  size: number
  open: number
  idle: number
  waiting: number
  /** Connections made so far. A new one may lead to another server. */
  made: number
}

export interface PoolOptions {
  role: Role
  size: number
  schema: string
  settings: ConnectionSettings
  logger: Logger
  clock: Clock
  /** Shared by the pools of one database. */
  commits: Commits
  selectWorking: SelectWorking
  /** Asked at BEGIN; the trace is told to the database, for events that it writes. */
  currentTraceparent?: (() => string | undefined) | undefined
}

const STUCK_MS = 5_000
/** A pool whose connections went silent this lately is not exhausted by its users. */
const SILENT_MS = 30_000

export function createPool({
  role,
  size,
  schema,
  settings,
  logger,
  clock,
  commits,
  selectWorking,
  currentTraceparent,
}: PoolOptions): Pool {
  const clients = new Set<Client>()
  let opened: PgPool | undefined
  let opening: Promise<PgPool> | undefined
  let target = ''
  let made = 0
  let closing: Promise<void> | undefined
  /** Since when connections are in use, by the clock that never jumps. */
  const usedSince = new Map<Client, number>()
  /** When a connection to the server was last found dead. */
  let distrustedAt = Number.NEGATIVE_INFINITY

  async function open(): Promise<PgPool> {
    const driver = await loadDriver()
    const config = await clientConfig(driver, settings, role)
    target = describeTarget(driver, config)
    const pool = new driver.Pool({ ...config, max: size, idleTimeoutMillis: 30_000 })
    // Without listeners the loss of an idle connection would end the process. A connection in use has none of the
    // pool's own, so each gets one for life.
    pool.on('error', (error) => logger.debug({ role, err: error }, 'lost an idle database connection'))
    pool.on('connect', (client) => {
      made++
      clients.add(client)
      client.on('error', (error) => logger.debug({ role, err: error }, 'lost a database connection'))
    })
    pool.on('remove', (client) => clients.delete(client))
    opened = pool
    return pool
  }

  async function acquire(): Promise<PoolClient> {
    if (closing) throw stopped()
    // A failure to find the address is not kept: the next caller asks again.
    opening ??= open().catch((error) => {
      opening = undefined
      throw error
    })
    const pool = opened ?? (await opening)
    try {
      return await pool.connect()
    } catch (error) {
      throw closing ? stopped() : noConnection(error, pool)
    }
  }

  function noConnection(cause: unknown, pool: PgPool): AftercommitError {
    const busy = pool.totalCount >= size && sqlstateOf(cause) === undefined && isWaitTimeout(cause)
    if (busy && clock.monotonic() - distrustedAt < SILENT_MS) {
      return unreachable(target, new Error('connections to it went silent and are made anew'))
    }
    if (busy) {
      const waited = formatDuration(settings.connectTimeoutMs)
      return new AftercommitError(
        'POOL_EXHAUSTED',
        `All ${size} ${role} connections to database ${target} stayed in use for ${waited}, so nothing was sent. ` +
          'Shorten the transactions or raise `poolSize`.',
        { cause },
      )
    }
    return unreachable(target, cause)
  }

  async function withClient<T>(use: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await acquire()
    usedSince.set(client, clock.monotonic())
    let failure: unknown
    try {
      const isDirect = mayPrepare(client)
      if (isDirect instanceof Promise) await isDirect
      const result = await use(client)
      commits.answered++
      return result
    } catch (error) {
      failure = error
      throw error
    } finally {
      usedSince.delete(client)
      release(client, failure)
    }
  }

  async function close(timeoutMs: number): Promise<void> {
    await opening?.catch(() => undefined)
    if (!opened) return
    await withTimeout(opened.end(), timeoutMs, clock, `The ${role} connections did not close`).catch(() => {
      logger.warn({ role, open: clients.size }, 'database connections were still in use at the end and were destroyed')
      for (const client of clients) destroyClient(client)
    })
  }

  const pool: Pool = {
    schema,
    sendsUntyped: true,
    query: <Row>(text: string, values: readonly Parameter[] = [], { repeated = false }: QueryOptions = {}) =>
      withClient((client) => (repeated ? runRepeated<Row>(client, text, values) : runQuery<Row>(client, text, values))),
    queryMany: (text) => withClient((client) => runQueries(client, text)),
    async transaction(fn, options = {}) {
      const onHookError = (error: unknown) => logger.error({ err: error }, 'an onCommit hook failed; the commit stands')
      const run = (tx: Transaction) => {
        shareIdentity(tx, pool)
        return fn(tx)
      }
      options.signal?.throwIfAborted()
      const cause = role === 'work' ? currentCause() : undefined
      const traceparent = role === 'work' ? currentTraceparent?.() : undefined
      const result = await withClient((client) =>
        runTransaction(client, schema, run, options, { cause, traceparent, onHookError }),
      )
      if (role === 'work' && options.readOnly !== true) commits.work++
      return result
    },
    async twoTrips<First, Last>(first: Statement, decide: DecideTrip<First>) {
      const written = await withClient((client) => runTwoTrips<First, Last>(client, first, decide))
      if (written !== undefined) commits.work++
      return written
    },
    distrust() {
      const stuckBefore = clock.monotonic() - STUCK_MS
      for (const client of clients) {
        const since = usedSince.get(client)
        if (since === undefined || (role === 'control' && since <= stuckBefore)) destroyClient(client)
      }
      distrustedAt = clock.monotonic()
      tryConnections([...usedSince.keys()], { clock, selectWorking }).then(
        (dead) => dead > 0 && logger.warn({ role, connections: dead }, 'connections went silent and were ended'),
        (error) => logger.debug({ role, err: error }, 'silent connections could not be judged'),
      )
    },
    stats: () => ({
      size,
      open: opened?.totalCount ?? 0,
      idle: opened?.idleCount ?? 0,
      waiting: opened?.waitingCount ?? 0,
      made,
    }),
    close(timeoutMs = 5_000) {
      closing ??= close(timeoutMs)
      return closing
    },
  }
  return pool
}

export function unreachable(target: string, cause: unknown): AftercommitError {
  const reason = reasonOf(cause)
  return new AftercommitError(
    'DATABASE_UNREACHABLE',
    `No connection to database ${target}: ${reason}. Nothing was sent. Check that the server runs and accepts us.`,
    { cause },
  )
}

/** An attempt on several addresses fails with an empty message and a code. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return cause.message || ('code' in cause ? String(cause.code) : cause.name)
}

/** Back to the pool only if the next user finds a live session outside any transaction. */
function release(client: PoolClient, failure: unknown): void {
  const healthy = client.getTransactionStatus() === 'I' && !endsSession(failure)
  if (healthy) {
    client.release()
    return
  }
  destroyClient(client)
  client.release(true)
}

function isWaitTimeout(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('timeout exceeded')
}

function stopped(): AftercommitError {
  return new AftercommitError(
    'STOPPED',
    'The database connections are closed because aftercommit was stopped, so nothing was sent.',
  )
}
