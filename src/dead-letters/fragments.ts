/** SQL about dead letters for statements of other stages, so that what is open and what is over is said once. */
import type { Queryable } from '../postgres/index.ts'
import type { LetterKind } from './letter.ts'

/** Whether a letter of this kind is not over. `owner` and `eventId` are expressions of the statement around it. */
export function hasOpenLetter(
  db: Queryable,
  kind: LetterKind,
  { owner, eventId }: { owner: string; eventId?: string },
): string {
  return `exists (select from ${db.schema}.letters l
                   where l.kind = '${kind}' and l.owner = ${owner}${eventId === undefined ? '' : ` and l.event_id = ${eventId}`}
                     and l.status in ('dead', 'redriving'))`
}

/** Letters and parked keys of subscriptions by `owner`; of one subscription if the parameter is not null. */
export function letterCounts(db: Queryable, subscription: string): string {
  return `select owner, (count(*) filter (where status in ('dead', 'redriving')))::integer as letters,
                (count(distinct key) filter (where parks))::integer as keys
           from ${db.schema}.letters
          where kind = 'subscription' and (status in ('dead', 'redriving') or parks)
            and (${subscription} is null or owner = ${subscription})
          group by owner`
}

/** Letters that subscriptions have of one event. */
export function subscriptionLettersOf(db: Queryable, eventId: string): string {
  return `select * from ${db.schema}.letters where kind = 'subscription' and event_id = ${eventId}`
}

/** Deletes the letters of a subscription. */
export function deleteLettersOf(db: Queryable, subscription: string): string {
  return `delete from ${db.schema}.letters where kind = 'subscription' and owner = ${subscription}`
}

/** Ends the letters of a subscription whose events come again, and lets go of their keys. */
export function discardForReset(db: Queryable, subscription: string): string {
  return `update ${db.schema}.letters
          set status = 'discarded', parks = false, reason = 'the projection was reset', changed_at = clock_timestamp()
        where kind = 'subscription'
          and owner = ${subscription}
          and (status in ('dead', 'redriving') or parks)`
}

/** The letters of rows that are done. `rows` selects them with the column `letter`. */
export function resolveLettersOf(db: Queryable, rows: string): string {
  return `update ${db.schema}.letters set status = 'resolved', changed_at = clock_timestamp()
        where id in (select letter from ${rows} where letter is not null) and status = 'redriving'`
}

/** The letters of rows that were taken away. `who` and `reason` are parameters. */
export function discardLettersOfRows(
  db: Queryable,
  rows: string,
  { who, reason }: { who: string; reason: string },
): string {
  return `update ${db.schema}.letters
          set status = 'discarded', who = ${who}, reason = ${reason}, changed_at = clock_timestamp()
        where id in (select letter from ${rows} where letter is not null) and status = 'redriving'`
}

/** Letters of ordered rows that are not over: later rows of their key wait. Over letters as `x`. */
export function heldByLetters(db: Queryable, columns: string, condition = 'true'): string {
  return `select ${columns} from ${db.schema}.letters x
         where ${condition} and x.parks and x.status in ('dead', 'redriving') and x.delivery is not null`
}

/** Whether a letter was marked that becomes a row again. */
export function hasUnplacedLetter(db: Queryable): string {
  return `exists (select from ${db.schema}.letters where status = 'redriving' and delivery is not null and placed is null)`
}
