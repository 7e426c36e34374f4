/**
 * The only file that names `pg`. It is loaded at first use, because importing this library must stay cheap for
 * processes that never talk to a database.
 *
 * Poolers in transaction mode forbid a lot, so we ask for little: no startup parameter but `application_name`, no named
 * statements except past any pooler (prepared.ts), settings only by `set local`.
 */
import { hostname } from 'node:os'
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import type { Client, ClientConfig, CustomTypesConfig, QueryResult as PgResult } from 'pg'
import { AftercommitError } from '../errors.ts'
import type { Parameter, QueryResult } from './queryable.ts'

/** A `postgres://` URL or its parts. A password may be a function, for tokens that expire. */
export type ConnectionTarget = string | ConnectionParts

/** Known now, or found out when the first connection is made. */
export type TargetSource = ConnectionTarget | (() => Promise<ConnectionTarget>)

export interface ConnectionParts {
  host?: string
  port?: number
  user?: string
  password?: string | (() => string | Promise<string>)
  database?: string
}

export interface ConnectionSettings {
  target: TargetSource
  ssl: boolean | TlsOptions | undefined
  /** Names this process in pg_stat_activity. */
  applicationName: string | undefined
  connectTimeoutMs: number
  /** 0: wait for an answer for ever. */
  queryTimeoutMs: number
}

/** What a connection is for; operators see it in pg_stat_activity. */
export type Role = 'work' | 'control' | 'listen' | 'migrate' | 'probe'

export type Driver = typeof import('pg')['default']

export async function loadDriver(): Promise<Driver> {
  const module = await import('pg')
  return module.default
}

export async function clientConfig(driver: Driver, settings: ConnectionSettings, role: Role): Promise<ClientConfig> {
  const source = settings.target
  const { applicationName, ...target } = splitTarget(typeof source === 'function' ? await source() : source)
  const name = settings.applicationName ?? applicationName ?? `${hostname()}:${process.pid}`
  return {
    ...target,
    application_name: `aftercommit:${role} ${name}`,
    connectionTimeoutMillis: settings.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    // Statements of one transaction may be sent without waiting for each other; answers keep their order. In this mode
    // the driver also destroys the connection when a query times out, instead of leaving it half open.
    pipeline: true,
    types: typesOf(driver),
    ...(settings.queryTimeoutMs > 0 ? { query_timeout: settings.queryTimeoutMs } : {}),
    ...(settings.ssl === undefined ? {} : { ssl: settings.ssl }),
  }
}

/** Where a connection goes, for messages: never with user or password. */
export function describeTarget(driver: Driver, config: ClientConfig): string {
  const { host, port, database } = readTarget(driver, config)
  // Without a name the server takes that of the user.
  const name = database ? `"${database}"` : 'without a name'
  return host.startsWith('/') ? `${name} at ${host}` : `${name} at ${host}:${port}`
}

function readTarget(driver: Driver, config: ClientConfig): Pick<Client, 'host' | 'port' | 'database'> {
  try {
    return new driver.Client(config)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_INVALID_URL') throw error
    // Neither the text nor the error, which repeats it: there may be a password in it.
    throw new AftercommitError(
      'BAD_OPTION',
      'The database URL cannot be read, so nothing was connected. Pass one like postgres://user:password@host:5432/name, with a port ' +
        'up to 65535 and special characters of the password percent-encoded (@ as %40, / as %2F).',
    )
  }
}

/** Ends a connection now. `end()` would wait for the answers of statements that may never come. */
export function destroyClient(client: Client): void {
  client.connection.stream.destroy()
}

/** Text and values apart: the driver copies a configuration object key by key, at every statement. */
export function runQuery<Row>(
  client: Client,
  text: string,
  values: readonly Parameter[] = [],
): Promise<QueryResult<Row>> {
  return client.query(text, values as Parameter[]).then(lastResult<Row>)
}

/** Text with several statements gives several results; the last one speaks for all. */
export function lastResult<Row>(result: PgResult | PgResult[]): QueryResult<Row> {
  return toResult(Array.isArray(result) ? result.at(-1)! : result)
}

/** Several statements in one message. Postgres runs them as one transaction unless they say otherwise. */
export async function runQueries(client: Client, text: string): Promise<QueryResult<Record<string, unknown>>[]> {
  const results: PgResult | PgResult[] = await client.query(text)
  return (Array.isArray(results) ? results : [results]).map(toResult<Record<string, unknown>>)
}

function toResult<Row>(result: PgResult): QueryResult<Row> {
  return { rows: result.rows, rowCount: result.rowCount ?? 0 }
}

/** The URL's own application_name would win over ours, so it is taken out and becomes the name of the process. */
function splitTarget(target: ConnectionTarget): ClientConfig & { applicationName?: string } {
  if (typeof target !== 'string') return definedOnly(target)
  if (!/^postgres(ql)?:\/\//.test(target)) {
    // The text itself is not repeated: whatever it is, it may contain a password.
    throw new AftercommitError(
      'BAD_OPTION',
      'The database URL does not start with postgres:// or postgresql://, so nothing was connected. ' +
        'Pass one like postgres://user:password@host:5432/name.',
    )
  }
  const [base = '', query = ''] = target.split('?', 2)
  const parameters = new URLSearchParams(query)
  const applicationName = parameters.get('application_name')
  parameters.delete('application_name')
  const connectionString = parameters.size > 0 ? `${base}?${parameters}` : base
  return applicationName ? { connectionString, applicationName } : { connectionString }
}

function definedOnly(parts: ConnectionParts): ClientConfig {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined))
}

const BOOL = 16
const INT8 = 20
const INT2 = 21
const INT4 = 23

/**
 * How our own connections read results. An application may have changed the driver's parsers for the whole process, so
 * the types our statements return are pinned here, per connection; anything else follows the application.
 */
function typesOf(driver: Driver): CustomTypesConfig {
  const pinned = new Map<number, (text: string) => unknown>([
    [BOOL, (text) => text === 't'],
    [INT8, (text) => text],
    [INT2, Number],
    [INT4, Number],
  ])
  return {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      (format !== 'binary' && pinned.get(oid)) || driver.types.getTypeParser(oid, format ?? 'text'),
  } as CustomTypesConfig
}
