/** From a row to a dead letter, and back. */
import type { Queryable } from '../postgres/index.ts'
import type { Claim } from './statements.ts'

export interface Burial {
  readonly claim: Claim
  readonly kind: string
  readonly owner: string
  readonly key: string
  readonly eventId: string
  readonly position: bigint
  /** JSON texts. */
  readonly event: string
  readonly error: string
  readonly attempts: number
  /** See Work. */
  readonly freesUniqueKey: boolean
}

/** Out of tries: the row becomes a letter that can be made a row again. False when it was no longer ours. */
export async function buryDelivery(db: Queryable, burial: Burial): Promise<boolean> {
  const { claim } = burial
  const { rows } = await db.query<{ buried: boolean }>(
    `with gone as (
       delete from ${db.schema}.deliveries
        where segment = ($1::text)::smallint and id = ($2::text)::bigint and token = ($3::text)::bigint
       returning *),
     letter as (
       insert into ${db.schema}.letters as l
         (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks, delivery)
       select $4::text, $5::text, $6::text, $7::text, ($8::text)::bigint, ($9::text)::jsonb, ($10::text)::jsonb,
              ($11::text)::integer, coalesce(g.first_attempt_at, clock_timestamp()), clock_timestamp(), g.ordered,
              jsonb_build_object('id', g.id, 'lane', g.lane, 'key', g.key, 'ordered', g.ordered,
                                 'unique_key', case when not $12::boolean then g.unique_key end,
                                 'event_id', g.event_id, 'payload', g.payload)
         from gone g
       on conflict (kind, owner, event_id) do update
         set error = excluded.error, attempts = l.attempts + excluded.attempts, status = 'dead', parks = excluded.parks,
             delivery = excluded.delivery, placed = null, last_attempt_at = excluded.last_attempt_at,
             changed_at = clock_timestamp())
     select exists (select from gone) as buried`,
    [
      String(claim.segment),
      claim.id.toString(),
      claim.token.toString(),
      burial.kind,
      burial.owner,
      burial.key,
      burial.eventId,
      burial.position.toString(),
      burial.event,
      burial.error,
      String(burial.attempts),
      burial.freesUniqueKey,
    ],
  )
  return rows[0]!.buried
}

/** A letter that was marked and can become work again. */
function placeable(db: Queryable): string {
  return `l.status = 'redriving' and l.delivery is not null and l.placed is null
          and not exists (select from ${db.schema}.deliveries d
                           where d.segment = 0 and d.id = (l.delivery ->> 'id')::bigint)
          and not exists (select from ${db.schema}.deliveries d
                           where d.segment = 0 and d.lane = (l.delivery ->> 'lane')::integer
                             and d.unique_key = l.delivery ->> 'unique_key')`
}

/** Whether letters of work that this process can do are about to become work again. */
export async function hasMarkedLetters(db: Queryable, names: string): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select exists (
       select from ${db.schema}.letters l
         join ${db.schema}.delivery_lanes n on n.lane = (l.delivery ->> 'lane')::integer
         join jsonb_to_recordset(($1::text)::jsonb) as w(kind text, name text) on w.kind = n.kind and w.name = n.name
        where ${placeable(db)}) as found`,
    [names],
  )
  return rows[0]!.found
}

/**
 * Letters that somebody marked become work again, at their first attempt and with their number: whatever of their key has
 * waited comes after them. One whose unique key or number is taken waits until it is free, and is not in the way of the
 * others. Answers how many.
 */
export async function placeMarkedLetters(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `with marked as materialized (
       select l.id, l.owner, l.delivery, (l.delivery ->> 'id')::bigint as made
         from ${db.schema}.letters l
        where ${placeable(db)}
        order by l.position
        limit ${Math.trunc(limit)}
          for update skip locked),
     made as (
       insert into ${db.schema}.deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, letter, event_id)
       select 0, m.made, (m.delivery ->> 'lane')::integer, m.owner, m.delivery ->> 'key', (m.delivery ->> 'ordered')::boolean,
              m.delivery ->> 'unique_key', m.delivery -> 'payload', m.id, m.delivery ->> 'event_id'
         from marked m
       on conflict do nothing
       returning id, letter)
     update ${db.schema}.letters l
        set placed = made.id
       from made
      where l.id = made.letter`,
  )
  return rowCount
}
