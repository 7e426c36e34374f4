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
