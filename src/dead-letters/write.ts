/** An attempt was the last one: its event or its row becomes a dead letter, in the statement that passes it. */
import { stringifyJson } from '../events/index.ts'
import { type Queryable, SERVER } from '../postgres/index.ts'
import { copyEvent } from './event-copy.ts'
import type { NewLetter } from './letter.ts'
import type { MovedTo, Owner } from './owner.ts'

/** Passes an event by way of a letter: checkpoint and letter in one statement, under the term. */
export async function writeLetter(db: Queryable, held: Owner, to: MovedTo, letter: NewLetter): Promise<boolean> {
  const { rows } = await db.query<{ moved: boolean }>(
    `with moved as (
       update ${db.schema}.subscription_partitions
          set position = ($3::text)::bigint, done = ($4::text)::int8multirange, last_event_id = $5::text,
              updated_at = clock_timestamp(), trying = null, tries = 0,
              deaths = case when position < ($3::text)::bigint then 0 else deaths end
        where id = $1::text and term = ($2::text)::bigint and ${SERVER} = $14::text
       returning id),
     letter as (
       insert into ${db.schema}.letters as l
         (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks)
       select $6::text, $1::text, $7::text, $5::text, ($8::text)::bigint, ($9::text)::jsonb, ($10::text)::jsonb,
              ($11::text)::integer, clock_timestamp() - make_interval(secs => ($12::text)::float8), clock_timestamp(), $13::boolean
         from moved
       on conflict (kind, owner, event_id) do update
         set error = excluded.error, attempts = l.attempts + excluded.attempts, status = 'dead', parks = excluded.parks,
             last_attempt_at = excluded.last_attempt_at, changed_at = clock_timestamp()
       returning id),
     -- The new letter holds the key from now on; those before it that are over are looked at no more.
     over as (
       update ${db.schema}.letters
          set parks = false
        where kind = $6::text and owner = $1::text and key = $7::text and parks and status in ('resolved', 'discarded')
          and event_id <> $5::text and $13::boolean and exists (select from moved)),
     unparked as (
       delete from ${db.schema}.parked where owner = $1::text and position = ($8::text)::bigint and exists (select from moved))
     select exists (select from moved) as moved, exists (select from letter) as written`,
    [
      held.id,
      held.term.toString(),
      to.position.toString(),
      to.done,
      letter.event.id,
      letter.kind,
      letter.key,
      letter.event.position.toString(),
      copyEvent(letter.event),
      stringifyJson(letter.error),
      String(letter.attempts),
      String(letter.sinceFirstMs / 1_000),
      letter.parks,
      held.server,
    ],
  )
  return rows[0]!.moved
}

export interface Burial {
  readonly claim: { readonly segment: number; readonly id: bigint; readonly token: bigint }
  readonly kind: string
  readonly owner: string
  readonly key: string
  readonly eventId: string
  readonly position: bigint
  /** JSON texts. */
  readonly event: string
  readonly error: string
  readonly attempts: number
  /** The unique key of the row is free from now on. */
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
