/** Events that wait behind a dead letter of their key: parked by the owner of the subscription, under its term. */
import type { AftercommitEvent } from '../events/index.ts'
import { type Queryable, SERVER } from '../postgres/index.ts'
import { copyEvent, eventOfCopy } from './event-copy.ts'
import { isOurs, type MovedTo, type Owner } from './owner.ts'

/** Passes events whose key waits behind a letter: copies and checkpoint in one statement. */
export async function parkEvents(
  db: Queryable,
  held: Owner,
  to: MovedTo,
  events: readonly { event: AftercommitEvent; key: string }[],
): Promise<boolean> {
  const copies = events.map(
    ({ event, key }) => `{"position":"${event.position}","key":${JSON.stringify(key)},"event":${copyEvent(event)}}`,
  )
  const { rows } = await db.query<{ moved: boolean }>(
    `with moved as (
       update ${db.schema}.subscription_partitions
          set position = ($3::text)::bigint, done = ($4::text)::int8multirange, updated_at = clock_timestamp(),
              deaths = case when position < ($3::text)::bigint then 0 else deaths end
        where id = $1::text and term = ($2::text)::bigint and ${SERVER} = $6::text
       returning id),
     copied as (
       insert into ${db.schema}.parked (owner, position, key, event)
       select $1::text, (e ->> 'position')::bigint, e ->> 'key', e -> 'event'
         from moved, jsonb_array_elements(($5::text)::jsonb) e
       on conflict do nothing)
     select exists (select from moved) as moved`,
    [held.id, held.term.toString(), to.position.toString(), to.done, `[${copies.join(',')}]`, held.server],
  )
  return rows[0]!.moved
}

/** Keys that have a letter in front of them. */
export async function selectParkedKeys(db: Queryable, id: string): Promise<string[]> {
  const { rows } = await db.query<{ key: string }>(
    `select key from ${db.schema}.letters where kind = 'subscription' and owner = $1::text and parks
     union
     select key from ${db.schema}.parked where owner = $1::text`,
    [id],
  )
  return rows.map((row) => row.key)
}

/** What waits for a key, in order, up to the next letter that is not over. */
export async function selectParked(db: Queryable, id: string, key: string, limit: number): Promise<AftercommitEvent[]> {
  const { rows } = await db.query<{ event: string }>(
    `select event::text as event
       from ${db.schema}.parked
      where owner = $1::text
        and key = $2::text
        and not exists (
          select from ${db.schema}.letters l
           where l.kind = 'subscription' and l.owner = $1::text and l.key = $2::text and l.parks
             and l.status in ('dead', 'redriving') and l.position < ${db.schema}.parked.position)
      order by position
      limit ${limit}`,
    [id, key],
  )
  return rows.map((row) => eventOfCopy(row.event))
}

export async function removeParked(db: Queryable, held: Owner, position: bigint): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.parked
      where owner = $1::text
        and position = ($3::text)::bigint
        and ${isOurs(db, '$2')}`,
    [held.id, held.term.toString(), position.toString()],
  )
  return rowCount === 1
}

/** Frees a key when nothing waits and no letter of it is dead. The owner alone parks, so this cannot race. */
export async function freeKey(db: Queryable, held: Owner, key: string): Promise<boolean> {
  const { rows } = await db.query<{ free: boolean }>(
    `with busy as (
       select 1 from ${db.schema}.parked where owner = $1::text and key = $3::text
       union all
       select 1 from ${db.schema}.letters
        where kind = 'subscription' and owner = $1::text and key = $3::text and parks and status in ('dead', 'redriving')),
     freed as (
       update ${db.schema}.letters
          set parks = false
        where kind = 'subscription' and owner = $1::text and key = $3::text and parks
          and not exists (select from busy)
          and ${isOurs(db, '$2')})
     select not exists (select from busy) as free`,
    [held.id, held.term.toString(), key],
  )
  return rows[0]!.free
}
