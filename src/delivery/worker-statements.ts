/** The lease of a worker: one row for everything a process works on. Times are the database's. */
import { hasUnplacedLetter } from '../dead-letters/index.ts'
import type { Database, Queryable } from '../postgres/index.ts'

/** Claims last this long without renewal. */
export const LEASE_SECONDS = 60

export interface NewWorker {
  readonly worker: string
  readonly process: string
  /** JSON, kind and name of what it can do. */
  readonly names: string
  /** It works only while its process holds a lock. */
  readonly locks: boolean
}

export async function enlistWorker(db: Queryable, { worker, process, names, locks }: NewWorker): Promise<void> {
  await db.query(
    `insert into ${db.schema}.delivery_workers (worker, process, lease_until, names, locks)
     values ($1::text, $2::text, clock_timestamp() + interval '${LEASE_SECONDS} seconds', ($3::text)::jsonb, $4::boolean)`,
    [worker, process, names, locks],
  )
}

/**
 * Claims of workers that nobody knows, as after a restore of a part or a row removed by hand, are noted as those of one that
 * is gone: else nobody would look for them.
 */
export async function noteUnknownWorkers(db: Queryable): Promise<void> {
  await db.query(
    `insert into ${db.schema}.delivery_workers (worker, process, lease_until)
     select distinct d.worker, '', '-infinity'::timestamptz
       from ${db.schema}.deliveries d
      where d.token is not null and d.worker is not null
        and not exists (select from ${db.schema}.delivery_workers w where w.worker = d.worker)
     on conflict do nothing`,
  )
}

/** What is said to workers alone. */
export const WORKERS_NUDGE = 'workers'

/** All workers that hear look for news now. */
export async function nudgeWorkers(db: Queryable, channel: string): Promise<void> {
  await db.query('select pg_catalog.pg_notify($1::text, $2::text)', [channel, WORKERS_NUDGE])
}

/** Gives the lease back. What it had not finished is free at once. */
export async function dismissWorker(db: Queryable, worker: string): Promise<void> {
  await db.query(`update ${db.schema}.delivery_workers set lease_until = '-infinity' where worker = $1::text`, [worker])
}

export interface WorkerNews {
  /** False: the lease ran out, and what was claimed under it may be somebody else's. */
  readonly held: boolean
  /** How many other workers there are. */
  readonly others: number
  /** Workers that should hold the lock of their process and do not. */
  readonly lockless: readonly string[]
  /** Counts pauses and cancellations. */
  readonly version: bigint
  /** Dead letters wait to be made work again. */
  readonly marked: boolean
  /** There are workers whose lease has ended: claims look for what they left. */
  readonly expired: boolean
  /** Destinations that have failed lately: a success there must be written down. */
  readonly troubled: readonly string[]
  /** Destinations that have limits, which only claims keep. */
  readonly limited: readonly string[]
  /** Destinations that get nothing now: paused, left alone as they asked, or behind an open circuit. */
  readonly resting: readonly string[]
}

export interface Renewal {
  readonly worker: string
  /** What it can do, where that has changed. */
  readonly names: string | null
  readonly locks: boolean
}

/** Renews the lease and brings what a worker must know, in one statement. */
export async function renewWorker(db: Queryable, { worker, names, locks }: Renewal): Promise<WorkerNews> {
  const { rows } = await db.query<{
    held: boolean
    others: string[] | null
    lockless: string[] | null
    version: string
    marked: boolean
    expired: boolean
    troubled: string[] | null
    limited: string[] | null
    resting: string[] | null
  }>(
    `with renewed as (
       update ${db.schema}.delivery_workers
          set lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds',
              names = coalesce(($2::text)::jsonb, names),
              locks = $3::boolean
        where worker = $1::text and lease_until > clock_timestamp()
       returning worker),
     others as (
       select w.worker,
              w.locks and not exists (
                select from pg_catalog.pg_locks l
                 where l.locktype = 'advisory' and l.granted and l.objsubid = 1
                   and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
                   and (l.classid::bigint << 32 | l.objid::bigint) = pg_catalog.hashtextextended(p.lock_key, 0)) as lockless
         from ${db.schema}.delivery_workers w
         left join ${db.schema}.processes p on p.process = w.process
        where w.worker <> $1::text and w.lease_until > clock_timestamp())
     select exists (select from renewed) as held,
            (select json_agg(worker) from others) as others,
            (select json_agg(worker) from others where lockless) as lockless,
            (select version::text from ${db.schema}.delivery_state) as version,
            ${hasUnplacedLetter(db)} as marked,
            exists (select from ${db.schema}.delivery_workers where lease_until <= clock_timestamp()) as expired,
            (select json_agg(destination) from ${db.schema}.destinations where failures > 0 or opened_at is not null) as troubled,
            (select json_agg(destination) from ${db.schema}.destinations
              where concurrency is not null or rate is not null) as limited,
            (select json_agg(destination) from ${db.schema}.destinations
              where opened_at is not null or paused or resting_until > clock_timestamp()) as resting`,
    [worker, names, locks],
  )
  const row = rows[0]!
  return {
    held: row.held,
    others: row.others?.length ?? 0,
    lockless: row.lockless ?? [],
    version: BigInt(row.version),
    marked: row.marked,
    expired: row.expired,
    troubled: row.troubled ?? [],
    limited: row.limited ?? [],
    resting: row.resting ?? [],
  }
}

/** How many this worker works on for each destination, as JSON; a claim says it too. */
export async function noteRunning(db: Queryable, worker: string, running: string): Promise<void> {
  await db.query(
    `update ${db.schema}.delivery_workers set running = ($2::text)::jsonb
      where worker = $1::text and running <> ($2::text)::jsonb`,
    [worker, running],
  )
}

/** Workers whose process is gone: what they had claimed is free. */
export async function expireWorkers(db: Queryable, workers: readonly string[]): Promise<void> {
  await db.query(
    `update ${db.schema}.delivery_workers
        set lease_until = '-infinity'
      where worker = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))`,
    [JSON.stringify(workers)],
  )
}

/**
 * Forgets workers of which no claim is left. Locked first and then looked at in a second statement: a claim that is under
 * way holds the row of its worker, and what it claimed could not be seen yet. No index knows of claims, so this may look at
 * every row. Answers whether none is left.
 */
export function forgetWorkers(db: Pick<Database, 'transaction'>): Promise<boolean> {
  return db.transaction(
    async (tx) => {
      const { rows } = await tx.query<{ worker: string }>(
        `select worker from ${tx.schema}.delivery_workers where lease_until <= clock_timestamp() for update skip locked`,
      )
      if (rows.length === 0) return true
      const { rowCount } = await tx.query(
        `delete from ${tx.schema}.delivery_workers w
          where w.worker = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))
            and not exists (select from ${tx.schema}.deliveries d where d.token is not null and d.worker = w.worker)`,
        [JSON.stringify(rows.map(({ worker }) => worker))],
      )
      return rowCount === rows.length
    },
    { isolation: 'read committed' },
  )
}

/** What may not be started now: work of a name, or whatever goes to a destination. */
export interface Paused {
  readonly kind: string | null
  readonly name: string | null
  readonly destination: string | null
}

export async function selectPaused(db: Queryable): Promise<Paused[]> {
  const { rows } = await db.query<Paused>(
    `select kind, name, null as destination from ${db.schema}.delivery_pauses
     union all
     select null, null, destination from ${db.schema}.destinations where paused`,
  )
  return rows
}

/** This worker's word that it obeys everything up to this version. */
export async function confirmVersion(db: Queryable, worker: string, version: bigint): Promise<void> {
  await db.query(
    `update ${db.schema}.delivery_workers set seen = ($2::text)::bigint where worker = $1::text and seen < ($2::text)::bigint`,
    [worker, version.toString()],
  )
}
