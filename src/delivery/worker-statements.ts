/** The row of a worker: what a process can do, and how much it has under way. The lease of the process says whether it lives. */
import { hasUnplacedLetter } from '../dead-letters/index.ts'
import type { Database, Queryable } from '../postgres/index.ts'

export interface NewWorker {
  /** The lease of its process. */
  readonly worker: string
  readonly process: string
  /** JSON, kind and name of what it can do. */
  readonly names: string
}

export async function enlistWorker(db: Queryable, { worker, process, names }: NewWorker): Promise<void> {
  await db.query(
    `insert into ${db.schema}.delivery_workers (worker, process, names)
     values ($1::text, $2::text, ($3::text)::jsonb)
     on conflict (worker) do update set names = excluded.names, seen = 0`,
    [worker, process, names],
  )
}

/**
 * Claims of workers that nobody knows, as after a restore of a part or a row removed by hand, are noted as those of one that
 * is gone: else nobody would look for them.
 */
export async function noteUnknownWorkers(db: Queryable): Promise<void> {
  await db.query(
    `insert into ${db.schema}.delivery_workers (worker, process)
     select distinct d.worker, ''
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

/** It can do nothing from now on, has nothing under way, and no pause waits for it. Its row ends with the lease. */
export async function dismissWorker(db: Queryable, worker: string): Promise<void> {
  await db.query(
    `update ${db.schema}.delivery_workers set names = '[]', running = '{}', seen = 9223372036854775807 where worker = $1::text`,
    [worker],
  )
}

export interface WorkerNews {
  /** False: the lease of the process ended, or its row is gone. */
  readonly listed: boolean
  /** How many other workers live. */
  readonly others: number
  /** Counts pauses and cancellations. */
  readonly version: bigint
  /** Dead letters wait to be made work again. */
  readonly marked: boolean
  /** There are workers whose lease has ended: claims look for what they left. */
  readonly gone: boolean
  /** Destinations that have failed lately: a success there must be written down. */
  readonly troubled: readonly string[]
  /** Destinations that have limits, which only claims keep. */
  readonly limited: readonly string[]
  /** Destinations that get nothing now: paused, left alone as they asked, or behind an open circuit. */
  readonly resting: readonly string[]
}

/** What a worker must know, in one statement. `names`: what it can do, where that has changed. */
export async function askForNews(
  db: Queryable,
  { worker, names }: { worker: string; names: string | null },
): Promise<WorkerNews> {
  const { rows } = await db.query<{
    listed: boolean
    others: number | string
    version: string
    marked: boolean
    gone: boolean
    troubled: string[] | null
    limited: string[] | null
    resting: string[] | null
  }>(
    `with renamed as (
       update ${db.schema}.delivery_workers set names = ($2::text)::jsonb
        where worker = $1::text and $2::text is not null)
     select exists (select from ${db.schema}.delivery_workers w
                      join ${db.schema}.live_leases l on l.lease = w.worker
                     where w.worker = $1::text) as listed,
            (select count(*) from ${db.schema}.delivery_workers w
               join ${db.schema}.live_leases l on l.lease = w.worker
              where w.worker <> $1::text) as others,
            (select version::text from ${db.schema}.delivery_state) as version,
            ${hasUnplacedLetter(db)} as marked,
            exists (select from ${db.schema}.delivery_workers w
                     where not exists (select from ${db.schema}.live_leases l where l.lease = w.worker)) as gone,
            (select json_agg(destination) from ${db.schema}.destinations where failures > 0 or opened_at is not null) as troubled,
            (select json_agg(destination) from ${db.schema}.destinations
              where concurrency is not null or rate is not null) as limited,
            (select json_agg(destination) from ${db.schema}.destinations
              where opened_at is not null or paused or resting_until > clock_timestamp()) as resting`,
    [worker, names],
  )
  const row = rows[0]!
  return {
    listed: row.listed,
    others: Number(row.others),
    version: BigInt(row.version),
    marked: row.marked,
    gone: row.gone,
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

/**
 * Forgets workers of which no claim is left. Locked first and then looked at in a second statement: a claim that is under
 * way holds the row of its worker, and what it claimed could not be seen yet. No index knows of claims, so this may look at
 * every row. Answers whether none is left.
 */
export function forgetWorkers(db: Pick<Database, 'transaction'>): Promise<boolean> {
  return db.transaction(
    async (tx) => {
      const { rows } = await tx.query<{ worker: string }>(
        `select worker from ${tx.schema}.delivery_workers w
          where not exists (select from ${tx.schema}.live_leases l where l.lease = w.worker)
            for update skip locked`,
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
