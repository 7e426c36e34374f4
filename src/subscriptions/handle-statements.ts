/** What people look at and change: states, pauses, seeks, removals. */
import { deleteLettersOf, letterCounts } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'

export interface SubscriptionState {
  readonly id: string
  readonly kind: string
  readonly status: 'active' | 'failing' | 'stopped' | 'paused'
  readonly reason: string | null
  readonly position: bigint
  /** Final events above the checkpoint that match, are not finished, and how old the oldest of them is. */
  readonly lag: bigint
  readonly lagSeconds: number
  readonly owner: string | null
  readonly term: bigint
  readonly lastEventId: string | null
  readonly updatedAt: Date
  readonly deadLetters: number
  /** Events that wait behind a dead letter, and of how many keys. */
  readonly parked: number
  readonly parkedKeys: number
  readonly on: readonly string[]
  readonly tenant: string | null
}

/** The lag counts positions up to the head, which is exact but for holes and what the filter skips. */
export async function selectStates(db: Queryable, id?: string): Promise<SubscriptionState[]> {
  const { rows } = await db.query<Record<string, string | number | boolean | null>>(
    `select s.id, s.kind, case when s.paused then 'paused' else s.status end as status, s.reason, p.position::text as pos,
            greatest((select max(h.position) from ${db.schema}.events h) - p.position, 0)::text as lag,
            coalesce(extract(epoch from clock_timestamp() - (
              select e.recorded_at from ${db.schema}.events e
               where e.position > p.position order by e.position limit 1)), 0)::float8 as age,
            (select l.process from ${db.schema}.live_leases l where l.lease = p.owner) as owner, p.term::text as term, p.last_event_id as event,
            (extract(epoch from p.updated_at) * 1000)::float8 as updated, s.definition::text as definition,
            coalesce(d.letters, 0) as letters, coalesce(d.keys, 0) as keys, coalesce(k.parked, 0) as parked
       from ${db.schema}.subscriptions s
       join ${db.schema}.subscription_partitions p on p.id = s.id
       left join (
         ${letterCounts(db, '$1::text')}) d on d.owner = s.id
       left join (
         select owner, count(*)::integer as parked
           from ${db.schema}.parked
          where $1::text is null or owner = $1::text
          group by owner) k on k.owner = s.id
      where $1::text is null or s.id = $1::text
      order by s.id`,
    [id ?? null],
  )
  return rows.map((row) => ({
    id: String(row.id),
    kind: String(row.kind),
    status: row.status as SubscriptionState['status'],
    reason: row.reason as string | null,
    position: BigInt(row.pos as string),
    lag: BigInt(row.lag as string),
    lagSeconds: Number(row.age),
    owner: row.owner as string | null,
    term: BigInt(row.term as string),
    lastEventId: row.event as string | null,
    updatedAt: new Date(Number(row.updated)),
    deadLetters: Number(row.letters),
    parked: Number(row.parked),
    parkedKeys: Number(row.keys),
    ...filterOf(row.definition as string),
  }))
}

function filterOf(definition: string): { on: readonly string[]; tenant: string | null } {
  const { on, tenant = null } = JSON.parse(definition) as { on: string[]; tenant?: string }
  return { on, tenant }
}

export async function setPaused(db: Queryable, id: string, paused: boolean): Promise<boolean> {
  const { rowCount } = await db.query(
    `update ${db.schema}.subscriptions
        set paused = $2::boolean, updated_at = clock_timestamp(),
            status = case when $2::boolean then status else 'active' end,
            reason = case when $2::boolean then reason end
      where id = $1::text`,
    [id, paused],
  )
  return rowCount === 1
}

export async function hasOwner(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await db.query(
    `select from ${db.schema}.subscription_partitions
      where id = $1::text
        and exists (select from ${db.schema}.live_leases l where l.lease = owner)`,
    [id],
  )
  return rows.length > 0
}

/** Moves a checkpoint on purpose: a new term, so that whoever runs it now stops and begins again there. Letters stay. */
export async function seekTo(db: Queryable, id: string, position: bigint): Promise<boolean> {
  const { rowCount } = await db.query(
    `with woken as (
       update ${db.schema}.subscriptions set status = 'active', reason = null, updated_at = clock_timestamp() where id = $1::text)
     update ${db.schema}.subscription_partitions
        set position = ($2::text)::bigint, done = '{}', settled = '{}', term = term + 1, owner = null, clean = true,
            trying = null, tries = 0, updated_at = clock_timestamp(), epoch = (select epoch from ${db.schema}.log_state)
      where id = $1::text`,
    [id, position.toString()],
  )
  return rowCount === 1
}

export async function countBetween(
  db: Queryable,
  after: bigint,
  upTo: bigint,
  filter: { type: string | null; tenant: string | null },
): Promise<number> {
  const { rows } = await db.query<{ count: string }>(
    `select count(*)::text as count
       from ${db.schema}.events
      where position > ($1::text)::bigint
        and position <= ($2::text)::bigint
        and ($3::text is null or type ~ $3::text)
        and ($4::text is null or tenant = $4::text)`,
    [after.toString(), upTo.toString(), filter.type, filter.tenant],
  )
  return Number(rows[0]!.count)
}

export async function removeSubscription(db: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `with parked as (delete from ${db.schema}.parked where owner = $1::text),
     letters as (${deleteLettersOf(db, '$1::text')}),
     keys as (delete from ${db.schema}.processed where subscription_id = $1::text)
     delete from ${db.schema}.subscriptions where id = $1::text`,
    [id],
  )
  return rowCount === 1
}

/** The lowest position any subscription still needs; null when there is none. */
export async function lowestNeeded(db: Queryable): Promise<bigint | null> {
  const { rows } = await db.query<{ lowest: string | null }>(
    `select min(position)::text as lowest from ${db.schema}.subscription_partitions`,
  )
  return rows[0]!.lowest === null ? null : BigInt(rows[0]!.lowest) + 1n
}

export async function lowestCheckpoint(db: Queryable, ids: readonly string[]): Promise<bigint> {
  const { rows } = await db.query<{ lowest: string | null; found: number }>(
    `select min(position)::text as lowest, count(*)::integer as found
       from ${db.schema}.subscription_partitions
      where id = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))`,
    [JSON.stringify(ids)],
  )
  const row = rows[0]!
  return Number(row.found) < ids.length ? 0n : BigInt(row.lowest!)
}
