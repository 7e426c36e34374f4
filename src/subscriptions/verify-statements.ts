import type { Queryable } from '../postgres/index.ts'

export interface WalkRow {
  readonly position: bigint
  readonly id: string
  readonly type: string
  readonly tenant: string | null
  /** Milliseconds. */
  readonly recorded: number
}

/** The log without its payloads, page by page. */
export async function selectWalk(db: Queryable, after: bigint, upTo: bigint, limit: number): Promise<WalkRow[]> {
  const { rows } = await db.query<{ pos: string; id: string; type: string; tenant: string | null; recorded: number }>(
    `select position::text as pos, id, type, tenant, (extract(epoch from recorded_at) * 1000)::float8 as recorded
       from ${db.schema}.events
      where position > ($1::text)::bigint
        and position <= ($2::text)::bigint
      order by position
      limit ${limit}`,
    [after.toString(), upTo.toString()],
  )
  return rows.map(({ pos, recorded, ...row }) => ({ ...row, position: BigInt(pos), recorded: Number(recorded) }))
}

/** Where the frontier stood when, in order. */
export async function selectMarks(db: Queryable): Promise<{ at: number; frontier: bigint }[]> {
  const { rows } = await db.query<{ at: number; frontier: string }>(
    `select (extract(epoch from at) * 1000)::float8 as at, frontier::text as frontier
       from ${db.schema}.frontier_marks
      order by frontier_marks.frontier, frontier_marks.at`,
  )
  return rows.map(({ at, frontier }) => ({ at: Number(at), frontier: BigInt(frontier) }))
}

/**
 * Subscriptions whose checkpoint belongs to another history: it lies above the fork, or the event that was finished there
 * is not in the log. Retention removes such events too, so without a complete log only the fork counts.
 */
export async function selectForked(db: Queryable): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>(
    `select distinct p.id
       from ${db.schema}.subscription_partitions p
      where p.position > (select min(e.began_after) from ${db.schema}.epochs e where e.epoch > p.epoch)
         or (p.last_event_id is not null
             and (select kept_from <= 1 from ${db.schema}.log_state)
             and not exists (select from ${db.schema}.events e where e.id = p.last_event_id))`,
  )
  return new Set(rows.map(({ id }) => id))
}
