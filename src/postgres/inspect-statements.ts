/** What is asked of a server to judge it. Everything here reads, and needs no right but to connect. */
import type { Queryable } from './queryable.ts'

export interface ServerSettings {
  readonly versionNumber: number
  readonly version: string
  readonly database: string
  readonly role: string
  readonly standby: boolean
  readonly synchronousCommit: string
  readonly fsync: boolean
  readonly fullPageWrites: boolean
  /** 0: never. */
  readonly idleInTransactionTimeoutMs: number
  /** After how many seconds the server notices a client that vanished; null on a Unix socket. */
  readonly vanishedSeconds: number | null
  /** How full the notification queue is, 0 to 1. */
  readonly queueUsage: number
  /** The server's clock when it answered. */
  readonly timeMs: number
}

/**
 * Silence before the first question of TCP, and the questions after it. Sessions of aftercommit change the settings for
 * themselves, so what other sessions have is asked: the reset value, where 0 stands for the default of Linux.
 */
const VANISHED_SECONDS = `(
  select max(case name when 'tcp_keepalives_idle' then coalesce(nullif(reset_val::integer, 0), 7200) end)
       + max(case name when 'tcp_keepalives_interval' then coalesce(nullif(reset_val::integer, 0), 75) end)
       * max(case name when 'tcp_keepalives_count' then coalesce(nullif(reset_val::integer, 0), 9) end)
    from pg_catalog.pg_settings
   where name like 'tcp_keepalives_%')`

export async function selectServerSettings(db: Queryable): Promise<ServerSettings> {
  const { rows } = await db.query<Record<string, string | number | boolean | null>>(
    `select pg_catalog.current_setting('server_version_num') as number,
            pg_catalog.current_setting('server_version') as version,
            pg_catalog.current_database()::text as database,
            current_user::text as role,
            pg_catalog.pg_is_in_recovery() as standby,
            pg_catalog.current_setting('synchronous_commit') as synchronous,
            pg_catalog.current_setting('fsync') = 'on' as fsync,
            pg_catalog.current_setting('full_page_writes') = 'on' as pages,
            (select setting from pg_catalog.pg_settings where name = 'idle_in_transaction_session_timeout') as idle,
            case when pg_catalog.inet_client_addr() is not null then ${VANISHED_SECONDS} end as vanished,
            pg_catalog.pg_notification_queue_usage()::float8 as usage,
            (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::float8 as time`,
  )
  const row = rows[0]!
  return {
    versionNumber: Number(row.number),
    version: String(row.version),
    database: String(row.database),
    role: String(row.role),
    standby: row.standby === true,
    synchronousCommit: String(row.synchronous),
    fsync: row.fsync === true,
    fullPageWrites: row.pages === true,
    idleInTransactionTimeoutMs: Number(row.idle),
    vanishedSeconds: row.vanished === null ? null : Number(row.vanished),
    queueUsage: Number(row.usage),
    timeMs: Number(row.time),
  }
}

export interface PreparedTransaction {
  readonly gid: string
  readonly owner: string
  readonly ageSeconds: number
}

/** Of this database, oldest first. */
export async function selectPreparedTransactions(db: Queryable): Promise<PreparedTransaction[]> {
  const { rows } = await db.query<{ gid: string; owner: string; age: number }>(
    `select gid, owner::text as owner, extract(epoch from pg_catalog.clock_timestamp() - prepared)::float8 as age
       from pg_catalog.pg_prepared_xacts
      where database = pg_catalog.current_database()
      order by prepared`,
  )
  return rows.map(({ gid, owner, age }) => ({ gid, owner, ageSeconds: Number(age) }))
}

export interface ReplicationSlot {
  readonly name: string
  /** WAL kept for it; null where the server cannot say. */
  readonly keptBytes: number | null
}

/** Slots that nobody reads: they keep WAL, and some keep dead rows, for ever. */
export async function selectInactiveSlots(db: Queryable): Promise<ReplicationSlot[]> {
  const { rows } = await db.query<{ name: string; kept: string | null }>(
    `select slot_name::text as name,
            case when not pg_catalog.pg_is_in_recovery()
              then pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn)::text end as kept
       from pg_catalog.pg_replication_slots
      where not active
        and not temporary
      order by slot_name`,
  )
  return rows.map(({ name, kept }) => ({ name, keptBytes: kept === null ? null : Number(kept) }))
}
