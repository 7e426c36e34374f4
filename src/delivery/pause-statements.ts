/** Names that are not worked on for now. Kept in the database: a pause survives restarts and holds everywhere. */
import type { Queryable } from '../postgres/index.ts'

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

/** Live workers that have not obeyed this version yet. */
export async function countUnaware(db: Queryable, version: bigint): Promise<number> {
  const { rows } = await db.query<{ count: string }>(
    `select count(*)::text as count
       from ${db.schema}.delivery_workers
      where lease_until > clock_timestamp()
        and seen < ($1::text)::bigint`,
    [version.toString()],
  )
  return Number(rows[0]!.count)
}
