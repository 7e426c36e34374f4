/**
 * One connection of our own for what a pool cannot give: LISTEN, session locks and migrations. It goes to the direct
 * address, past any pooler. It is never repaired; its owner waits for `closed` and opens another.
 */
import { AftercommitError } from '../errors.ts'
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
import { unreachable } from './pool.ts'
import type { Queryable, QueryResult } from './queryable.ts'
import { keepAlive } from './tcp-keepalive.ts'
import { runTransaction, type Transaction, type TransactionOptions } from './transaction.ts'

export interface Session extends Queryable {
  /** What the server said at the start. A pooler says something of its own, so compare with pg_backend_pid(). */
  readonly announcedPid: number
  queryMany(text: string): Promise<QueryResult<Record<string, unknown>>[]>
  transaction<T>(fn: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  onNotification(listener: (channel: string, payload: string) => void): void
  /** Resolves when the connection is gone, for whatever reason. */
  readonly closed: Promise<Error>
  /** Ends it now, without a goodbye. May be called twice. */
  destroy(): void
}

export interface SessionOptions {
  role: Role
  schema: string
  settings: ConnectionSettings
  onHookError: (error: unknown) => void
}

export async function openSession({ role, schema, settings, onHookError }: SessionOptions): Promise<Session> {
  const driver = await loadDriver()
  const config = await clientConfig(driver, settings, role)
  const client = new driver.Client(config)
  const closed = new Promise<Error>((resolve) => {
    client.on('error', resolve)
    client.on('end', () => resolve(new AftercommitError('DATABASE_UNREACHABLE', `The ${role} connection was closed.`)))
  })
  try {
    await client.connect()
    if (role !== 'probe') await keepAlive(client)
  } catch (error) {
    destroyClient(client)
    throw unreachable(describeTarget(driver, config), error)
  }
  return {
    schema,
    sendsUntyped: true,
    announcedPid: Number(Reflect.get(client, 'processID')),
    query: (text, values) => runQuery(client, text, values),
    queryMany: (text) => runQueries(client, text),
    transaction: (fn, options = {}) => runTransaction(client, schema, fn, options, { onHookError }),
    onNotification(listener) {
      client.on('notification', ({ channel, payload }) => listener(channel, payload ?? ''))
    },
    closed,
    destroy: () => destroyClient(client),
  }
}
