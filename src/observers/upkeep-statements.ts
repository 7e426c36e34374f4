import type { Queryable } from '../postgres/index.ts'

/** Makes the days of run records to come and drops those that are over. Answers what was done, in words. */
export async function keepRunDays(db: Queryable, days: number): Promise<string[]> {
  const { rows } = await db.query<{ done: string }>(
    `select array_to_json(${db.schema}.keep_run_days(make_interval(days => ($1::text)::integer)))::text as done`,
    [String(days)],
  )
  return JSON.parse(rows[0]?.done ?? '[]')
}

/** How far a subscription is behind the head, and who reads it now; undefined when there is none. */
export async function selectBacklog(
  db: Queryable,
  subscription: string,
): Promise<{ lag: bigint; owner: string | null } | undefined> {
  const { rows } = await db.query<{ lag: string | null; owner: string | null }>(
    `select greatest((select max(h.position) from ${db.schema}.events h) - p.position, 0)::text as lag,
            (select l.process from ${db.schema}.live_leases l where l.lease = p.owner) as owner
       from ${db.schema}.subscription_partitions p
      where p.id = $1::text
      order by p.position
      limit 1`,
    [subscription],
  )
  const row = rows[0]
  return row && { lag: BigInt(row.lag ?? 0), owner: row.owner }
}
