/** Names and destinations that are not worked on for now. Kept in the database: a pause survives restarts and holds everywhere. */
import type { Queryable } from '../postgres/index.ts'

/** Who pauses what a destination gave up, where no person did. */
export const ITSELF = 'aftercommit'

export interface Pause {
  readonly kind: string
  readonly name: string
  readonly who: string
  readonly reason: string | null
}

/** Answers the version that every worker must have seen before the pause holds everywhere. */
export async function pauseName(db: Queryable, { kind, name, who, reason }: Pause): Promise<bigint> {
  const { rows } = await db.query<{ version: string }>(
    `with paused as (
       insert into ${db.schema}.delivery_pauses as p (kind, name, who, reason)
       values ($1::text, $2::text, $3::text, $4::text)
       on conflict (kind, name) do update
         set who = excluded.who, reason = coalesce(excluded.reason, p.reason), at = clock_timestamp())
     update ${db.schema}.delivery_state set version = version + 1 returning version::text as version`,
    [kind, name, who, reason],
  )
  return BigInt(rows[0]!.version)
}

/** False when somebody paused it before, and then theirs stands. */
export async function pauseIfWorking(db: Queryable, { kind, name, who, reason }: Pause): Promise<boolean> {
  const { rows } = await db.query<{ paused: boolean }>(
    `with paused as (
       insert into ${db.schema}.delivery_pauses (kind, name, who, reason)
       values ($1::text, $2::text, $3::text, $4::text)
       on conflict (kind, name) do nothing
       returning 1),
     told as (
       update ${db.schema}.delivery_state set version = version + 1 where exists (select from paused))
     select exists (select from paused) as paused`,
    [kind, name, who, reason],
  )
  return rows[0]!.paused
}

/** False when it was not paused. */
export async function resumeName(db: Queryable, kind: string, name: string): Promise<boolean> {
  const { rows } = await db.query<{ resumed: boolean }>(
    `with resumed as (
       delete from ${db.schema}.delivery_pauses where kind = $1::text and name = $2::text returning 1),
     told as (
       update ${db.schema}.delivery_state set version = version + 1 where exists (select from resumed))
     select exists (select from resumed) as resumed`,
    [kind, name],
  )
  return rows[0]!.resumed
}

/** Answers the version that every worker must have seen before the pause holds everywhere. */
export async function pauseDestination(
  db: Queryable,
  { destination, who, reason }: { destination: string; who: string; reason: string | null },
): Promise<bigint> {
  const { rows } = await db.query<{ version: string }>(
    `with paused as (
       insert into ${db.schema}.destinations as d (destination, paused, who, reason)
       values ($1::text, true, $2::text, $3::text)
       on conflict (destination) do update
         set paused = true, who = excluded.who, reason = coalesce(excluded.reason, d.reason), changed_at = clock_timestamp())
     update ${db.schema}.delivery_state set version = version + 1 returning version::text as version`,
    [destination, who, reason],
  )
  return BigInt(rows[0]!.version)
}

/** Whatever holds it back: a pause, a rest it asked for, an open circuit, which is probed at once. False when nothing did. */
export async function resumeDestination(db: Queryable, destination: string): Promise<boolean> {
  const { rows } = await db.query<{ resumed: boolean }>(
    `with resumed as (
       update ${db.schema}.destinations
          set paused = false, who = null, reason = null, resting_until = null,
              open_until = case when probing then open_until else least(open_until, clock_timestamp()) end,
              changed_at = clock_timestamp()
        where destination = $1::text
          and (paused or resting_until > clock_timestamp() or (open_until > clock_timestamp() and not probing))
       returning 1),
     told as (
       update ${db.schema}.delivery_state set version = version + 1 where exists (select from resumed))
     select exists (select from resumed) as resumed`,
    [destination],
  )
  return rows[0]!.resumed
}

/** Live workers that have not obeyed this version yet. */
export async function countUnaware(db: Queryable, version: bigint): Promise<number> {
  const { rows } = await db.query<{ count: string }>(
    `select count(*)::text as count
       from ${db.schema}.delivery_workers w
       join ${db.schema}.live_leases l on l.lease = w.worker
      where w.seen < ($1::text)::bigint`,
    [version.toString()],
  )
  return Number(rows[0]!.count)
}
