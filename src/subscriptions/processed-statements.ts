/** Keys of what was processed: one row per subscription and event, written in the transaction of the work itself. */
import { hasOpenLetter } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'

/**
 * Claims an event for a subscription. Whoever comes second waits here until the first transaction has ended: committed,
 * the key is taken; rolled back, it is free again. So the check and the claim are one.
 */
export async function claimKey(
  db: Queryable,
  subscription: string,
  eventId: string,
  position: bigint | null,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into ${db.schema}.processed (subscription_id, event_id, position)
     values ($1::text, $2::text,
             coalesce(($3::text)::bigint, (select position from ${db.schema}.events where id = $2::text limit (select 1))))
     on conflict (subscription_id, event_id) do nothing`,
    [subscription, eventId, position === null ? null : position.toString()],
  )
  return rowCount === 1
}

export async function hasKey(db: Queryable, subscription: string, eventId: string): Promise<boolean> {
  const { rows } = await db.query(
    `select from ${db.schema}.processed
      where subscription_id = $1::text
        and event_id = $2::text`,
    [subscription, eventId],
  )
  return rows.length > 0
}

/**
 * Deletes keys written before a time, oldest first, at most `limit`. A key stays while its event can come again: the
 * checkpoint is below it, or it has a letter or a parked copy. A key without a position names an event that is not in
 * the log, and one without a subscription belongs to nobody here: those go by age alone.
 */
export async function deleteKeysBefore(db: Queryable, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `${deletion(db, `($1::text)::timestamptz`, 'p.position < k.position')}
      limit ${limit})`,
    [before.toISOString()],
  )
  return rowCount
}

/** The same for keys whose event the checkpoint had passed that long ago. Both ages are by the clock of the database. */
export async function deletePassedKeys(db: Queryable, seconds: number, limit: number): Promise<number> {
  const cutoff = `(clock_timestamp() - make_interval(secs => ($1::text)::float8))`
  const { rowCount } = await db.query(
    `${deletion(
      db,
      cutoff,
      `(p.position < k.position or coalesce((
                select m.position
                  from ${db.schema}.checkpoint_marks m
                 where m.subscription_id = p.id
                   and m.at <= ${cutoff}
                 order by m.at desc
                 limit 1) < k.position, true))`,
    )}
      limit ${limit})`,
    [String(seconds)],
  )
  return rowCount
}

function deletion(db: Queryable, before: string, isNeeded: string): string {
  return `delete from ${db.schema}.processed
      where (subscription_id, event_id) in (
        select k.subscription_id, k.event_id
          from ${db.schema}.processed k
         where k.processed_at < ${before}
           and not (k.position is not null and exists (
             select from ${db.schema}.subscription_partitions p where p.id = k.subscription_id and ${isNeeded}))
           and not ${hasOpenLetter(db, 'subscription', { owner: 'k.subscription_id', eventId: 'k.event_id' })}
           and not exists (
             select from ${db.schema}.parked w where w.owner = k.subscription_id and w.position = k.position)
         order by k.processed_at`
}

/** Notes where checkpoints stand, hourly at most, and forgets notes that a later one makes useless. */
export async function markCheckpoints(db: Queryable, seconds: number): Promise<void> {
  await db.query(
    `with useless as (
       delete from ${db.schema}.checkpoint_marks m
        where exists (
          select from ${db.schema}.checkpoint_marks n
           where n.subscription_id = m.subscription_id
             and n.at > m.at
             and n.at <= clock_timestamp() - make_interval(secs => ($1::text)::float8)))
     insert into ${db.schema}.checkpoint_marks (subscription_id, position)
     select p.id, min(p.position)
       from ${db.schema}.subscription_partitions p
      where exists (select from ${db.schema}.processed k where k.subscription_id = p.id)
        and not exists (
          select from ${db.schema}.checkpoint_marks m
           where m.subscription_id = p.id
             and m.at > clock_timestamp() - interval '1 hour')
      group by p.id
     on conflict do nothing`,
    [String(seconds)],
  )
}

/** Forgets the keys of events above a position, so that they are handled again when they come again. */
export async function forgetKeys(db: Queryable, subscription: string, after: bigint): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.processed
      where subscription_id = $1::text
        and (position > ($2::text)::bigint or position is null)`,
    [subscription, after.toString()],
  )
  return rowCount
}
