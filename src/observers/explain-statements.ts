/** What is kept about one event, for who asks why: records, starts, and what is still to be done. All of it only reads. */
import type { Queryable } from '../postgres/index.ts'
import type { ActionRecord } from './run-record.ts'

/** One attempt at some or all actions of one observer. */
export interface StoredRun {
  readonly observer: string
  readonly attempt: number
  readonly at: Date
  readonly actions: readonly ActionRecord[]
}

/** Oldest first. */
export async function selectRuns(db: Queryable, eventId: string): Promise<StoredRun[]> {
  const { rows } = await db.query<{ observer: string; attempt: number; at: number; actions: string }>(
    `select owner as observer, attempt, (extract(epoch from at) * 1000)::float8 as at, actions::text as actions
       from ${db.schema}.runs
      where event_id = $1::text and kind = 'observer'
      order by at, attempt
      limit ${MOST_RUNS}`,
    [eventId],
  )
  return rows.map(({ observer, attempt, at, actions }) => ({
    observer,
    attempt: Number(attempt),
    at: new Date(Number(at)),
    actions: JSON.parse(actions),
  }))
}

/** More than anybody reads; an event that a broken receiver was offered for days must not fill the memory. */
const MOST_RUNS = 10_000

/** Where actions begin, by `observer/action`. */
export async function selectStarts(db: Queryable): Promise<Map<string, bigint>> {
  const { rows } = await db.query<{ owner: string; start: string }>(
    `select observer || '/' || action as owner, start_position::text as start from ${db.schema}.observer_actions`,
  )
  return new Map(rows.map(({ owner, start }) => [owner, BigInt(start)]))
}

/** Deliveries of these actions that carry the event. Walks what waits for them, and nothing else. */
export async function selectDeliveriesOf(db: Queryable, eventId: string, owners: readonly string[]): Promise<bigint[]> {
  const { rows } = await db.query<{ id: string }>(
    `select d.id::text as id
       from ${db.schema}.delivery_lanes l
       join ${db.schema}.deliveries d on d.lane = l.lane
      where l.kind = 'action'
        and l.name = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))
        and d.payload #>> '{event,id}' = $1::text
      order by d.id`,
    [eventId, JSON.stringify(owners)],
  )
  return rows.map(({ id }) => BigInt(id))
}

/** How far a subscription has come; undefined when there is none. */
export async function selectCheckpoint(db: Queryable, subscription: string): Promise<bigint | undefined> {
  const { rows } = await db.query<{ position: string | null }>(
    `select min(position)::text as position from ${db.schema}.subscription_partitions where id = $1::text`,
    [subscription],
  )
  const position = rows[0]?.position
  return position === null || position === undefined ? undefined : BigInt(position)
}
