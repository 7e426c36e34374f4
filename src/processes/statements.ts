/** The row of each process, and its lease. Times are the database's. */
import type { Queryable } from '../postgres/index.ts'
import { LEASE_SECONDS } from './numbers.ts'

export interface ProcessInfo {
  readonly process: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly configHash: string
}

/** `lockKey`: the name of the lock that the process holds now; null leaves what was recorded. */
export async function registerProcess(db: Queryable, info: ProcessInfo, lockKey: string | null): Promise<void> {
  await db.query(
    `insert into ${db.schema}.processes as p (process, host, pid, version, config_hash, lock_key)
     values ($1::text, $2::text, ($3::text)::integer, $4::text, $5::text, $6::text)
     on conflict (process) do update
       set heartbeat_at = clock_timestamp(), lock_key = coalesce(excluded.lock_key, p.lock_key)`,
    [info.process, info.host, String(info.pid), info.version, info.configHash, lockKey],
  )
}

export interface NewLease {
  readonly lease: string
  /** A lock can be held on this path, and proves that the process lives. */
  readonly locked: boolean
  readonly lockKey: string | null
}

/** The row is made anew where somebody removed it. */
export async function beginLease(
  db: Queryable,
  info: ProcessInfo,
  { lease, locked, lockKey }: NewLease,
): Promise<void> {
  await registerProcess(db, info, lockKey)
  await db.query(
    `update ${db.schema}.processes
        set lease = $2::text, locked = $3::boolean,
            lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
      where process = $1::text`,
    [info.process, lease, locked],
  )
}

export interface Others {
  /** False: the lease has ended, and others may have what it held. */
  readonly held: boolean
  /** Leases of other processes that live. */
  readonly others: readonly string[]
  /** Those of them whose lock is not held. */
  readonly lockless: readonly string[]
}

/** Looks after the own lease and those of all others; with `renew` its end moves on. One statement, whatever it holds. */
export async function lookAtLeases(
  db: Queryable,
  { process, lease, locked, renew }: { process: string; lease: string; locked: boolean; renew: boolean },
): Promise<Others> {
  const { rows } = await db.query<{ held: boolean; others: string[] | null; lockless: string[] | null }>(
    `with renewed as (
       update ${db.schema}.processes
          set lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds', locked = $3::boolean,
              heartbeat_at = clock_timestamp()
        where $4::boolean and process = $1::text and lease = $2::text and lease_until > clock_timestamp()
       returning lease),
     others as materialized (
       select lease, lockless from ${db.schema}.live_leases where process <> $1::text)
     select case when $4::boolean then exists (select from renewed)
                 else exists (select from ${db.schema}.live_leases where process = $1::text and lease = $2::text) end as held,
            (select json_agg(lease order by lease) from others) as others,
            (select json_agg(lease) from others where lockless) as lockless`,
    [process, lease, locked, renew],
  )
  const row = rows[0]!
  return { held: row.held, others: row.others ?? [], lockless: row.lockless ?? [] }
}

/** Ends leases of processes that are gone. One that has its lock again meanwhile keeps its lease. */
export async function endGoneLeases(db: Queryable, leases: readonly string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update ${db.schema}.processes
        set lease_until = null, lease = null
      where lease in (select l.lease from ${db.schema}.live_leases l
                       where l.lockless and l.lease = any (array(select jsonb_array_elements_text(($1::text)::jsonb))))`,
    [JSON.stringify(leases)],
  )
  return rowCount ?? 0
}

/** Gives the lease back: its work is free at once. */
export async function endLease(db: Queryable, lease: string): Promise<void> {
  await db.query(`update ${db.schema}.processes set lease_until = null, lease = null where lease = $1::text`, [lease])
}

export async function removeProcess(db: Queryable, process: string): Promise<void> {
  await db.query(
    `with mark as (delete from ${db.schema}.idle_marks where process = $1::text)
     delete from ${db.schema}.processes where process = $1::text`,
    [process],
  )
}

/** The word that says on the channel of the bell that a lease began or ended. */
export const LEASES_CHANGED = 'leases'

export async function tellLeasesChanged(db: Queryable, channel: string): Promise<void> {
  await db.query('select pg_catalog.pg_notify($1::text, $2::text)', [channel, LEASES_CHANGED])
}
