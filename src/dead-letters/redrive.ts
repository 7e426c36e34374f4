/**
 * Redriving: a dead letter gets another first attempt. Somebody marks it, or the time after which letters are redriven
 * automatically has passed. Marking runs nothing. The owner does:
 *
 *   a subscription   runs marked letters under its term, then what is parked behind them; the letter is resolved or dead again
 *   deliveries       a marked letter becomes a row with its old number; the end of that row settles the letter
 */
import type { AftercommitEvent } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { eventOfCopy } from './event-copy.ts'
import type { LetterKind } from './letter.ts'
import { isOurs, type Owner } from './owner.ts'
import { conditions, type LetterFilter } from './statements.ts'

/** Marks dead letters; whoever owns them does the rest. A letter that is not dead is left alone. Answers what changed. */
export async function markLetters(
  db: Queryable,
  filter: LetterFilter,
  mark: { status: 'redriving' | 'discarded'; who: string; reason: string | null },
): Promise<{ ids: bigint[]; owners: string[] }> {
  const { where, values } = conditions({ ...filter, status: 'dead' })
  const at = values.length
  const { rows } = await db.query<{ letter: string; owner: string }>(
    `update ${db.schema}.letters l
        set status = $${at + 1}::text, redrives = l.redrives + ($${at + 1}::text = 'redriving')::integer, who = $${at + 2}::text, reason = $${at + 3}::text, changed_at = clock_timestamp()
      ${where}
    returning l.id::text as letter, l.owner`,
    [...values, mark.status, mark.who, mark.reason],
  )
  return { ids: rows.map((row) => BigInt(row.letter)), owners: [...new Set(rows.map((row) => row.owner))] }
}

/** Marks letters of these owners that have been dead for so long and were not tried again so often. Answers how many. */
export async function redriveByItself(
  db: Queryable,
  kind: LetterKind,
  owners: readonly string[],
  { afterMs, max }: { afterMs: number; max: number },
): Promise<number> {
  const { rowCount } = await db.query(
    `update ${db.schema}.letters
        set status = 'redriving', redrives = redrives + 1, who = 'aftercommit', reason = 'auto_redrive',
            changed_at = clock_timestamp()
      where kind = $1::text
        and owner = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))
        and status = 'dead'
        and redrives < ($4::text)::integer
        and changed_at < clock_timestamp() - make_interval(secs => ($3::text)::float8)`,
    [kind, JSON.stringify(owners), String(afterMs / 1_000), String(max)],
  )
  return rowCount
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
export async function resolveLetter(db: Queryable, held: Owner, letter: bigint): Promise<boolean> {
  const { rowCount } = await db.query(
    `update ${db.schema}.letters
        set status = case when status = 'redriving' then 'resolved' else status end,
            changed_at = case when status = 'redriving' then clock_timestamp() else changed_at end
      where id = ($3::text)::bigint
        and ${isOurs(db, '$2')}`,
    [held.id, held.term.toString(), letter.toString()],
  )
  return rowCount === 1
}

/** A redriven letter that failed again. */
export async function returnLetter(
  db: Queryable,
  held: Owner,
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

/** Remembers which letters were written in one streak, wherever the subscription runs next. */
export async function markStreak(db: Queryable, held: Owner, eventIds: readonly string[]): Promise<void> {
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
export async function redriveStreak(db: Queryable, held: Owner): Promise<number> {
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
