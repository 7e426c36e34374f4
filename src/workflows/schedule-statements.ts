/** Schedules as they are stored. Their next time is a delivery, which is what fires them. */
import type { Queryable } from '../postgres/index.ts'

export interface StoredSchedule {
  readonly id: string
  readonly cron: string
  readonly zone: string
  readonly action: string
  /** Null: it never comes again. */
  readonly nextAt: Date | null
  /** When it last did what it does. */
  readonly lastAt: Date | null
}

/** Answers the database's time. Whoever adds the same schedule at the same time waits here. */
export async function lockSchedule(db: Queryable, id: string): Promise<Date> {
  await db.query(`select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0))`, [
    `${db.schema} schedule ${id}`,
  ])
  const { rows } = await db.query<{ clock: number | string }>(
    `select (extract(epoch from clock_timestamp()) * 1000)::float8 as clock`,
  )
  return new Date(Math.floor(Number(rows[0]!.clock)))
}

export async function selectSchedules(db: Queryable, id?: string): Promise<StoredSchedule[]> {
  const { rows } = await db.query<ScheduleRow>(
    `select id, cron, zone, action, (extract(epoch from next_at) * 1000)::float8 as next,
            (extract(epoch from last_at) * 1000)::float8 as last
       from ${db.schema}.schedules
      where $1::text is null or id = $1::text
      order by id`,
    [id ?? null],
  )
  return rows.map(({ next, last, ...row }) => ({
    id: row.id,
    cron: row.cron,
    zone: row.zone,
    action: row.action,
    nextAt: next === null ? null : new Date(Number(next)),
    lastAt: last === null ? null : new Date(Number(last)),
  }))
}

interface ScheduleRow {
  id: string
  cron: string
  zone: string
  action: string
  next: number | string | null
  last: number | string | null
}

export async function saveSchedule(
  db: Queryable,
  schedule: Omit<StoredSchedule, 'lastAt' | 'nextAt'> & { nextAt: Date },
): Promise<void> {
  await db.query(
    `insert into ${db.schema}.schedules (id, cron, zone, action, next_at)
     values ($1::text, $2::text, $3::text, $4::text, ($5::text)::timestamptz)
     on conflict (id) do update
       set cron = excluded.cron, zone = excluded.zone, action = excluded.action, next_at = excluded.next_at`,
    [schedule.id, schedule.cron, schedule.zone, schedule.action, schedule.nextAt.toISOString()],
  )
}

export async function saveFired(db: Queryable, id: string, firedAt: Date): Promise<void> {
  await db.query(`update ${db.schema}.schedules set last_at = ($2::text)::timestamptz where id = $1::text`, [
    id,
    firedAt.toISOString(),
  ])
}

export async function saveNext(db: Queryable, id: string, nextAt: Date | undefined): Promise<void> {
  await db.query(`update ${db.schema}.schedules set next_at = ($2::text)::timestamptz where id = $1::text`, [
    id,
    nextAt?.toISOString() ?? null,
  ])
}

/** When what fires next is due, or was; undefined when nothing does. What was made again from a dead letter is not unique. */
export async function selectNext(db: Queryable, name: string): Promise<Date | undefined> {
  const { rows } = await db.query<{ due: number | string }>(
    `select (d.payload ->> 'due')::float8 as due
       from ${db.schema}.deliveries d
       join ${db.schema}.delivery_lanes l on l.lane = d.lane
      where l.kind = 'timer' and l.name = $1::text and d.segment = 0 and d.unique_key is not null`,
    [name],
  )
  return rows[0] && new Date(Number(rows[0].due))
}

/** The row that would fire next goes, whoever has claimed it. */
export async function removeNext(db: Queryable, name: string): Promise<void> {
  await db.query(
    `delete from ${db.schema}.deliveries d
      using ${db.schema}.delivery_lanes l
      where l.kind = 'timer' and l.name = $1::text and d.lane = l.lane and d.segment = 0 and d.unique_key is not null`,
    [name],
  )
}

/**
 * Every row goes, those made again from dead letters too, whoever has claimed them. One that fails at this very moment is
 * written anew, unseen by this statement: repeat it until none is left.
 */
export async function removeFirings(db: Queryable, name: string): Promise<void> {
  await db.query(
    `delete from ${db.schema}.deliveries d
      using ${db.schema}.delivery_lanes l
      where l.kind = 'timer' and l.name = $1::text and d.lane = l.lane and d.segment = 0`,
    [name],
  )
}

export async function hasFirings(db: Queryable, name: string): Promise<boolean> {
  const { rows } = await db.query<{ there: boolean }>(
    `select exists (select from ${db.schema}.deliveries d
                      join ${db.schema}.delivery_lanes l on l.lane = d.lane
                     where l.kind = 'timer' and l.name = $1::text and d.segment = 0) as there`,
    [name],
  )
  return rows[0]!.there
}

export async function deleteSchedule(db: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await db.query(`delete from ${db.schema}.schedules where id = $1::text`, [id])
  return rowCount > 0
}
