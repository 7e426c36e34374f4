/** Marks and heartbeats of this process. Times are the database's. */
import type { Queryable } from '../postgres/index.ts'

/** A mark counts this long without renewal. */
export const MARK_SECONDS = 30

/** Tells writers to ring. Must be committed before the holders are looked at: it is a statement of its own. */
export async function writeIdleMark(db: Queryable, process: string): Promise<void> {
  await db.query(
    `insert into ${db.schema}.idle_marks (process, idle_until)
     values ($1::text, clock_timestamp() + interval '${MARK_SECONDS} seconds')
     on conflict (process) do update set idle_until = excluded.idle_until`,
    [process],
  )
}

export async function removeIdleMark(db: Queryable, process: string): Promise<void> {
  await db.query(`delete from ${db.schema}.idle_marks where process = $1::text`, [process])
}

export interface Heartbeat {
  /** False when somebody removed our row: register again. */
  readonly registered: boolean
  /** False when we want a mark and have none: after a crash of the server the table is empty. */
  readonly marked: boolean
  readonly wake: 'doorbell' | 'poll'
  /** How full the notification queue is, 0 to 1. */
  readonly queueUsage: number
}

export async function beatHeart(db: Queryable, process: string, armed: boolean): Promise<Heartbeat> {
  const { rows } = await db.query<{ registered: boolean; marked: boolean; wake: Heartbeat['wake']; usage: number }>(
    `with beat as (
       update ${db.schema}.processes set heartbeat_at = clock_timestamp()
        where process = $1::text returning 1),
     mark as (
       update ${db.schema}.idle_marks set idle_until = clock_timestamp() + interval '${MARK_SECONDS} seconds'
        where process = $1::text and $2::boolean returning 1)
     select exists (select from beat) as registered, exists (select from mark) as marked, s.wake,
            pg_catalog.pg_notification_queue_usage()::float8 as usage
       from ${db.schema}.settings s`,
    [process, armed],
  )
  const row = rows[0]!
  return { registered: row.registered, marked: row.marked, wake: row.wake, queueUsage: Number(row.usage) }
}
