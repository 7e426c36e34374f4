/** The statements of this folder. Those about migrations are in `migration-statements.ts`. */
import type { Queryable } from './queryable.ts'

export async function selectDatabaseName(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ name: string }>(`select pg_catalog.current_database()::text as name`)
  return rows[0]!.name
}

export async function selectMayReadSystemIdentifier(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ readable: boolean }>(
    `select pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') as readable`,
  )
  return rows[0]!.readable
}

export async function selectSystemIdentifier(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ system: string }>(
    `select system_identifier::text as system
       from pg_catalog.pg_control_system()`,
  )
  return rows[0]!.system
}

/** Milliseconds since 1970 by the clock of the server. */
export async function selectTime(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ ms: string }>(
    `select (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::float8::text as ms`,
  )
  return Number(rows[0]!.ms)
}

export async function selectServerVersion(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ version: string }>(
    `select pg_catalog.current_setting('server_version_num') as version`,
  )
  return Number(rows[0]!.version)
}

export async function selectBackendPid(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ pid: number }>(`select pg_catalog.pg_backend_pid() as pid`)
  return rows[0]!.pid
}

/** True when this session holds the lock now. It is released when the session ends, however it ends. */
export async function trySessionLock(db: Queryable, key: string): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>(
    `select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1::text, 0)) as locked`,
    [key],
  )
  return rows[0]!.locked
}

/** True when this transaction holds the lock now. It is released when the transaction ends, however it ends. */
export async function tryTransactionLock(db: Queryable, key: string): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>(
    `select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0)) as locked`,
    [key],
  )
  return rows[0]!.locked
}

/** The cast spares libraries that cannot read a column of type void. */
export async function notify(db: Queryable, channel: string, payload: string): Promise<void> {
  await db.query(`select pg_catalog.pg_notify($1::text, $2::text)::text`, [channel, payload])
}

/** SQL: the start of the server that answers. After a failover the same term may stand for another history. */
export const SERVER = `extract(epoch from pg_catalog.pg_postmaster_start_time())::text`

/** Those of these backends that are at a statement now. A role sees the states of its own backends. */
export async function selectActiveBackends(db: Queryable, pids: readonly number[]): Promise<Set<number>> {
  const { rows } = await db.query<{ pid: number }>(
    `select pid
       from pg_catalog.pg_stat_activity
      where pid = any (array(select pg_catalog.jsonb_array_elements_text(($1::text)::jsonb)::integer))
        and state is distinct from 'idle'
        and state is distinct from 'idle in transaction'`,
    [JSON.stringify(pids)],
  )
  return new Set(rows.map(({ pid }) => Number(pid)))
}
