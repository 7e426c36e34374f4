/** Letters and parked events of subscriptions, written and settled under the owner's term. */
import { copyEvent, eventOfCopy, type NewLetter } from '../dead-letters/index.ts'
import { type AftercommitEvent, stringifyJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Checkpoint } from './progress.ts'
import { type Held, SERVER } from './statements.ts'

/** Passes an event by way of a letter: checkpoint and letter in one statement, under the term. */
export async function writeLetter(db: Queryable, held: Held, to: Checkpoint, letter: NewLetter): Promise<boolean> {
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

/** Passes events whose key waits behind a letter: copies and checkpoint in one statement. */
export async function parkEvents(
  db: Queryable,
  held: Held,
  to: Checkpoint,
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

export interface MarkedLetter {
  readonly letter: bigint
  readonly key: string
  readonly parks: boolean
  readonly event: AftercommitEvent
  readonly discarded: boolean
}

/** Letters that somebody marked, in position order: their owner runs or drops them. */
export async function selectMarked(db: Queryable, id: string, limit: number): Promise<MarkedLetter[]> {
  const { rows } = await db.query<{ letter: string; key: string; parks: boolean; event: string; status: string }>(
    `select id::text as letter, key, parks, event::text as event, status
       from ${db.schema}.letters
      where kind = 'subscription'
        and owner = $1::text
        and (status = 'redriving' or (parks and status in ('discarded', 'resolved')))
      order by position
      limit ${limit}`,
    [id],
  )
  return rows.map((row) => ({
    letter: BigInt(row.letter),
    key: row.key,
    parks: row.parks,
    event: eventOfCopy(row.event),
    discarded: row.status !== 'redriving',
  }))
}

/** Which of these subscriptions have marked letters. */
export async function selectMarkedOwners(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ owner: string }>(
    `select distinct owner
       from ${db.schema}.letters
      where kind = 'subscription'
        and owner = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))
        and (status = 'redriving' or (parks and status in ('discarded', 'resolved')))`,
    [JSON.stringify(ids)],
  )
  return rows.map((row) => row.owner)
}

/**
 * Whether owners of these subscriptions have letters to redrive, or events to handle that are parked behind a letter which
 * is over. Events behind a dead letter wait for a person, and do not count.
 */
export async function hasRedriven(db: Queryable, ids: readonly string[]): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select exists (
       select from ${db.schema}.letters l
        where l.kind = 'subscription'
          and l.owner = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))
          and (l.status = 'redriving'
            or l.parks and l.status in ('discarded', 'resolved')
              and (not ${deadLetterOfKey(db)}
                or exists (select from ${db.schema}.parked p
                            where p.owner = l.owner and p.key = l.key and not ${deadLetterOfKey(db, 'p.position')})))) as found`,
    [JSON.stringify(ids)],
  )
  return rows[0]!.found
}

function deadLetterOfKey(db: Queryable, before?: string): string {
  return `exists (select from ${db.schema}.letters d
                   where d.kind = 'subscription' and d.owner = l.owner and d.key = l.key and d.parks and d.status = 'dead'
                     ${before === undefined ? '' : `and d.position < ${before}`})`
}

/** The letter was handled; whether its key is free is decided when nothing waits behind it any more. */
export async function resolveLetter(db: Queryable, held: Held, letter: bigint): Promise<boolean> {
  const { rowCount } = await db.query(
    `update ${db.schema}.letters
        set status = case when status = 'redriving' then 'resolved' else status end,
            changed_at = case when status = 'redriving' then clock_timestamp() else changed_at end
      where id = ($3::text)::bigint
        and exists (select from ${db.schema}.subscription_partitions where id = $1::text and term = ($2::text)::bigint)`,
    [held.id, held.term.toString(), letter.toString()],
  )
  return rowCount === 1
}

/** A redriven letter that failed again. */
export async function returnLetter(
  db: Queryable,
  held: Held,
  letter: bigint,
  error: string,
  attempts: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with ours as (
       update ${db.schema}.subscription_partitions
          set trying = null, tries = 0
        where id = $1::text and term = ($2::text)::bigint
       returning id)
     update ${db.schema}.letters
        set status = 'dead', error = ($4::text)::jsonb, attempts = attempts + ($5::text)::integer,
            last_attempt_at = clock_timestamp(), changed_at = clock_timestamp()
      where id = ($3::text)::bigint
        and exists (select from ours)`,
    [held.id, held.term.toString(), letter.toString(), error, String(attempts)],
  )
  return rowCount === 1
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

export async function removeParked(db: Queryable, held: Held, position: bigint): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.parked
      where owner = $1::text
        and position = ($3::text)::bigint
        and exists (select from ${db.schema}.subscription_partitions where id = $1::text and term = ($2::text)::bigint)`,
    [held.id, held.term.toString(), position.toString()],
  )
  return rowCount === 1
}

/** Frees a key when nothing waits and no letter of it is dead. The owner alone parks, so this cannot race. */
export async function freeKey(db: Queryable, held: Held, key: string): Promise<boolean> {
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
          and exists (select from ${db.schema}.subscription_partitions where id = $1::text and term = ($2::text)::bigint))
     select not exists (select from busy) as free`,
    [held.id, held.term.toString(), key],
  )
  return rows[0]!.free
}

/** Remembers which letters were written in one streak, wherever the subscription runs next. */
export async function markStreak(db: Queryable, held: Held, eventIds: readonly string[]): Promise<void> {
  await db.query(
    `update ${db.schema}.letters
        set streak = true
      where kind = 'subscription'
        and owner = $1::text
        and event_id = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))
        and ${isOurs(db, '$3')}`,
    [held.id, JSON.stringify(eventIds), held.term.toString()],
  )
}

/** Letters of a bad deploy: tried again by themselves once the head succeeds. Answers how many. */
export async function redriveStreak(db: Queryable, held: Held): Promise<number> {
  const { rowCount } = await db.query(
    `update ${db.schema}.letters
        set status = 'redriving', streak = false, who = 'aftercommit', reason = 'the subscription recovered',
            changed_at = clock_timestamp()
      where kind = 'subscription'
        and owner = $1::text
        and streak
        and status = 'dead'
        and ${isOurs(db, '$2')}`,
    [held.id, held.term.toString()],
  )
  return rowCount
}

/** $1 is the subscription; the parameter is the term. */
function isOurs(db: Queryable, term: string): string {
  return `exists (select from ${db.schema}.subscription_partitions where id = $1::text and term = (${term}::text)::bigint)`
}
