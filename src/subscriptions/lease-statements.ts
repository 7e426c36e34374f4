/**
 * The right to run a subscription: one owner per partition in the whole cluster, fenced by a term that only grows. The owner
 * is named by the lease of its process; without that lease the subscription is free.
 */
import { type Queryable, SERVER } from '../postgres/index.ts'

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
 * Takes each of these that is free, or was left by a process whose lease has ended. With `force` also from an owner that
 * lives. `former`: leases that this process has or had.
 */
export async function takeLeases(
  db: Queryable,
  processLease: string,
  wanted: readonly Wanted[],
  { force, former }: { readonly force: boolean; readonly former: readonly string[] },
): Promise<Lease[]> {
  const { rows } = await db.query<Record<string, string | number | boolean | null>>(
    `with wanted as (
       select w ->> 'id' as id, (w ->> 'generation')::bigint as generation from jsonb_array_elements(($2::text)::jsonb) w),
     free as (
       select p.id, p.partition, p.clean, p.owner, p.epoch, s.status, s.reason
         from ${db.schema}.subscription_partitions p
         join ${db.schema}.subscriptions s on s.id = p.id
         join wanted w on w.id = s.id and w.generation = s.generation
        where not s.paused
          and s.status <> 'stopped'
          and (p.owner is null or p.owner = $1::text or $3::boolean
               or not exists (select from ${db.schema}.live_leases l where l.lease = p.owner))
          for update of p skip locked)
     update ${db.schema}.subscription_partitions p
        set owner = $1::text, term = p.term + 1, clean = false,
            -- An owner that gave the subscription back is alive, and so is this process.
            deaths = case
              when free.clean then 0
              when free.owner is null or free.owner = any (array(select jsonb_array_elements_text(($4::text)::jsonb))) then p.deaths
              else p.deaths + 1
            end
       from free
      where p.id = free.id and p.partition = free.partition
     returning p.id, p.term::text as term, p.position::text as pos, p.done::text as done, free.clean, p.deaths, p.save::text as save,
       p.settled::text as settled,
       (select kept_from::text from ${db.schema}.log_state) as kept_from, ${SERVER} as server, free.status, free.reason,
       (select min(e.began_after)::text from ${db.schema}.epochs e where e.epoch > free.epoch) as forked_at`,
    [
      processLease,
      JSON.stringify(wanted.map(({ id, generation }) => ({ id, generation: String(generation) }))),
      force,
      JSON.stringify(former),
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

export interface Standing {
  readonly id: string
  readonly generation: bigint
  readonly paused: boolean
  readonly status: string
}

/** How the subscriptions of a process stand. One that does not come back was lost. */
export async function selectStandings(
  db: Queryable,
  processLease: string,
  held: readonly { id: string; term: bigint }[],
): Promise<Standing[]> {
  const { rows } = await db.query<Record<string, string | boolean>>(
    `select s.id, s.generation::text as generation, s.paused, s.status
       from jsonb_array_elements(($2::text)::jsonb) h
       join ${db.schema}.subscription_partitions p on p.id = h ->> 'id'
       join ${db.schema}.subscriptions s on s.id = p.id
      where p.term = (h ->> 'term')::bigint
        and p.owner = $1::text`,
    [processLease, JSON.stringify(held.map(({ id, term }) => ({ id, term: String(term) })))],
  )
  return rows.map((row) => ({
    id: String(row.id),
    generation: BigInt(row.generation as string),
    paused: row.paused as boolean,
    status: String(row.status),
  }))
}

/** The word that says on the channel of the bell that a subscription has no owner now. */
export const SUBSCRIPTION_FREE = 'free'

/** How a run ended. */
export interface Release {
  /** Everything that was begun is in the checkpoint. */
  readonly clean: boolean
  /** An error ended the run that is no fault of the database: like a death, it makes the events under way suspects. */
  readonly failed?: boolean
}

/** Gives a subscription back, and tells processes that stand by, unless `channel` is null. */
export async function releaseLease(
  db: Queryable,
  held: { id: string; term: bigint },
  { clean, failed = false, channel }: Release & { readonly channel: string | null },
): Promise<void> {
  await db.query(
    `with released as (
       update ${db.schema}.subscription_partitions
          set owner = null, clean = $3::boolean, deaths = deaths + ($5::boolean)::integer
        where id = $1::text
          and term = ($2::text)::bigint
       returning id)
     select pg_catalog.pg_notify($4::text, '${SUBSCRIPTION_FREE}') from released where $4::text is not null`,
    [held.id, held.term.toString(), clean, channel, failed],
  )
}
