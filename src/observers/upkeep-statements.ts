import type { Queryable } from '../postgres/index.ts'

/** Makes the days of run records to come and drops those that are over. Answers what was done, in words. */
export async function keepRunDays(db: Queryable, days: number): Promise<string[]> {
  const { rows } = await db.query<{ done: string }>(
    `select array_to_json(${db.schema}.keep_run_days(make_interval(days => ($1::text)::integer)))::text as done`,
    [String(days)],
  )
  return JSON.parse(rows[0]?.done ?? '[]')
}

/**
 * Events that observers have not finished, each counted once, and who reads them now; undefined when there is no subscription.
 * An event is unread or under way in the window of its reader, or it has rows of actions that wait or are claimed. `settled`
 * has events of the window of which a row is written already.
 */
export async function selectBacklog(
  db: Queryable,
  subscription: string,
  actions: readonly string[],
): Promise<{ lag: bigint; owner: string | null } | undefined> {
  const { rows } = await db.query<{ lag: string | null; owner: string | null }>(
    `select (greatest(
              (select max(h.position) from ${db.schema}.events h) - p.position
                - (select coalesce(sum(upper(r) - lower(r)), 0) from unnest(p.done) r)
                - (select count(*) from jsonb_object_keys(p.settled)), 0)
             + (select count(distinct waiting.event_id)
                  from (select d.event_id
                          from ${db.schema}.delivery_lanes l
                          join ${db.schema}.deliveries d on d.lane = l.lane
                         where l.kind = 'action' and l.name in (select jsonb_array_elements_text(($2::text)::jsonb))
                         limit ${MOST_COUNTED}) waiting))::text as lag,
            (select l.process from ${db.schema}.live_leases l where l.lease = p.owner) as owner
       from ${db.schema}.subscription_partitions p
      where p.id = $1::text
      order by p.position
      limit 1`,
    [subscription, JSON.stringify(actions)],
  )
  const row = rows[0]
  return row && { lag: BigInt(row.lag ?? 0), owner: row.owner }
}

/** A backlog of more rows is told as this many: counting all of them every few seconds would cost more than it says. */
const MOST_COUNTED = 100_000
