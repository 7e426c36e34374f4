/** The right to run a subscription: one owner per partition in the whole cluster, fenced by a term that only grows. */
import { type Queryable, SERVER } from '../postgres/index.ts'

export const LEASE_SECONDS = 15

export interface Lease {
  readonly id: string
  readonly term: bigint
  readonly server: string
  readonly position: bigint
  readonly done: string
  /** The owner before gave it back. */
  readonly clean: boolean
  /** Owners in a row that died while the position stayed the same, the one before included. */
  readonly deaths: number
  /** Number of the last write of an owner. */
  readonly save: bigint
  /** Of unfinished events: owners of actions whose row or dead letter is written, by position. */
  readonly settled: Readonly<Record<string, readonly string[]>>
  /** Events below this were dropped by retention. */
  readonly keptFrom: bigint
  /** Where history forked since the checkpoint was written; null when it did not. */
  readonly forkedAt: bigint | null
  /** It was failing when it was last run. */
  readonly failing: boolean
  /** Why it is not well, as shown to people. */
  readonly reason: string | null
}

export interface Wanted {
  readonly id: string
  /** The generation of our definition: an older one may not take the lease. */
  readonly generation: bigint
}

/**
 * Takes whatever of these is free, or was left by an owner whose lease ran out or who is known to be gone. Says in the same
 * statement whether we hold our lock, so that no lease belongs to a process of which others do not know how to tell.
 */
export async function takeLeases(
  db: Queryable,
  process: string,
  wanted: readonly Wanted[],
  gone: readonly string[],
  { force, locked }: { force: boolean; locked: boolean },
): Promise<Lease[]> {
  const { rows } = await db.query<Record<string, string | number | boolean | null>>(
    `with me as (
       update ${db.schema}.processes set locked = $5::boolean where process = $1::text and locked <> $5::boolean),
     wanted as (
       select w ->> 'id' as id, (w ->> 'generation')::bigint as generation from jsonb_array_elements(($2::text)::jsonb) w),
     free as (
       select p.id, p.partition, p.clean, p.epoch, s.status, s.reason
         from ${db.schema}.subscription_partitions p
         join ${db.schema}.subscriptions s on s.id = p.id
         join wanted w on w.id = s.id and w.generation = s.generation
        where not s.paused
          and s.status <> 'stopped'
          and (p.owner is null or p.owner = $1::text or p.lease_until < clock_timestamp() or $4::boolean
               or p.owner = any (array(select jsonb_array_elements_text(($3::text)::jsonb))))
          for update of p skip locked)
     update ${db.schema}.subscription_partitions p
        set owner = $1::text, term = p.term + 1, clean = false, deaths = case when free.clean then 0 else p.deaths + 1 end,
            lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
       from free
      where p.id = free.id and p.partition = free.partition
     returning p.id, p.term::text as term, p.position::text as pos, p.done::text as done, free.clean, p.deaths, p.save::text as save,
       p.settled::text as settled,
       (select kept_from::text from ${db.schema}.log_state) as kept_from, ${SERVER} as server, free.status, free.reason,
       (select min(e.began_after)::text from ${db.schema}.epochs e where e.epoch > free.epoch) as forked_at`,
    [
      process,
      JSON.stringify(wanted.map(({ id, generation }) => ({ id, generation: String(generation) }))),
      JSON.stringify(gone),
      force,
      locked,
    ],
  )
  return rows.map((row) => ({
    id: String(row.id),
    term: BigInt(row.term as string),
    server: String(row.server),
    position: BigInt(row.pos as string),
    done: String(row.done),
    clean: row.clean as boolean,
    deaths: Number(row.deaths),
    save: BigInt(row.save as string),
    settled: JSON.parse(row.settled as string),
    keptFrom: BigInt(row.kept_from as string),
    forkedAt: row.forked_at === null ? null : BigInt(row.forked_at as string),
    failing: row.status === 'failing',
    reason: row.reason as string | null,
  }))
}

export interface Renewed {
  readonly id: string
  readonly generation: bigint
  readonly paused: boolean
  readonly status: string
}

/** One statement for all of a process. What does not come back was lost. */
export async function renewLeases(
  db: Queryable,
  process: string,
  held: readonly { id: string; term: bigint }[],
): Promise<Renewed[]> {
  const { rows } = await db.query<Record<string, string | boolean>>(
    `update ${db.schema}.subscription_partitions p
        set lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
       from jsonb_array_elements(($2::text)::jsonb) h
       join ${db.schema}.subscriptions s on s.id = h ->> 'id'
      where p.id = h ->> 'id'
        and p.term = (h ->> 'term')::bigint
        and p.owner = $1::text
     returning p.id, s.generation::text as generation, s.paused, s.status`,
    [process, JSON.stringify(held.map(({ id, term }) => ({ id, term: String(term) })))],
  )
  return rows.map((row) => ({
    id: String(row.id),
    generation: BigInt(row.generation as string),
    paused: row.paused as boolean,
    status: String(row.status),
  }))
}

/** Gives a lease back. `clean`: everything that was begun is in the checkpoint. */
export async function releaseLease(db: Queryable, held: { id: string; term: bigint }, clean: boolean): Promise<void> {
  await db.query(
    `update ${db.schema}.subscription_partitions
        set owner = null, lease_until = null, clean = $3::boolean
      where id = $1::text
        and term = ($2::text)::bigint`,
    [held.id, held.term.toString(), clean],
  )
}

/**
 * Owners of these subscriptions that should hold their process lock and do not: their LISTEN connection is gone. Only
 * one that stays free counts, so that a process which reconnects keeps what it has.
 */
export async function selectLockless(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ owner: string }>(
    `select distinct p.owner
       from ${db.schema}.subscription_partitions p
       left join ${db.schema}.processes r on r.process = p.owner
      where p.id = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))
        and p.owner is not null
        and coalesce(r.locked, true)
        and not exists (
          select from pg_catalog.pg_locks l
           where l.locktype = 'advisory'
             and l.granted
             and l.objsubid = 1
             and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
             and (l.classid::bigint << 32 | l.objid::bigint) = pg_catalog.hashtextextended(r.lock_key, 0))`,
    [JSON.stringify(ids)],
  )
  return rows.map((row) => row.owner)
}
