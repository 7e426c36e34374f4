/** Looking at instances and their timers; nothing here locks or writes. */
import { parseJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { HELD } from './statements.ts'
import type { InstanceSummary } from './store.ts'
import type { TimerPayload } from './to-write.ts'

export interface InstanceFilter {
  readonly type: string | undefined
  readonly limit: number
  /** The position of the last one of the page before. */
  readonly before: bigint | undefined
}

/** Newest event first. Of every type so many are looked at by index, whatever the number of instances. */
export async function selectInstances(
  db: Queryable,
  { type, limit, before }: InstanceFilter,
): Promise<InstanceSummary[]> {
  const { rows } = await db.query<InstanceRow>(
    `with recursive types(type) as (
       (select type from ${db.schema}.workflow_instances where $1::text is null or type = $1::text order by type limit 1)
       union all
       select (select i.type from ${db.schema}.workflow_instances i
                where i.type > t.type and $1::text is null order by i.type limit 1)
         from types t
        where t.type is not null)
     select ${instanceColumns}
       from types t
      cross join lateral (
        select * from ${db.schema}.workflow_instances i
         where i.type = t.type and i.last_position < coalesce(($2::text)::bigint, 9223372036854775807)
         order by i.last_position desc
         limit ${Math.trunc(limit)}) i
      order by i.last_position desc
      limit ${Math.trunc(limit)}`,
    [type ?? null, before === undefined ? null : before.toString()],
  )
  return rows.map(toSummary)
}

/** For whoever goes through all of them, in no particular order that means anything. */
export async function selectInstancesAfter(
  db: Queryable,
  type: string,
  after: string | undefined,
  limit: number,
): Promise<InstanceSummary[]> {
  const { rows } = await db.query<InstanceRow>(
    `select ${instanceColumns}
       from ${db.schema}.workflow_instances i
      where i.type = $1::text and ($2::text is null or i.id > $2::text)
      order by i.id
      limit ${Math.trunc(limit)}`,
    [type, after ?? null],
  )
  return rows.map(toSummary)
}

const instanceColumns = `i.type, i.id, i.version::text as version, i.generation, i.unique_key as key, i.paused,
  i.last_position::text as position, ${ms('i.created_at')} as created, ${ms('i.last_event_at')} as last, ${ms('i.completed_at')} as completed`

interface InstanceRow {
  type: string
  id: string
  version: string
  generation: number
  key: string | null
  paused: boolean
  position: string
  created: number | string
  last: number | string
  completed: number | string | null
}

function toSummary(row: InstanceRow): InstanceSummary {
  return {
    type: row.type,
    id: row.id,
    version: Number(row.version),
    generation: Number(row.generation),
    uniqueKey: row.key,
    completed: row.completed !== null,
    paused: row.paused,
    createdAt: new Date(Number(row.created)),
    lastEventAt: new Date(Number(row.last)),
    completedAt: row.completed === null ? null : new Date(Number(row.completed)),
    position: BigInt(row.position),
  }
}

/** A timer that has not fired. */
export interface TimerSummary {
  /** Of its delivery. */
  readonly delivery: bigint
  readonly type: string
  readonly id: string
  readonly key: string | null
  readonly dueAt: Date
  /** Its instance is paused. */
  readonly held: boolean
  readonly attempts: number
}

/** By the time they are due, soonest first, of one workflow or of all. Held ones come last. */
export async function selectTimers(
  db: Queryable,
  { type, id, limit }: { type: string | undefined; id: string | undefined; limit: number },
): Promise<TimerSummary[]> {
  const { rows } = await db.query<TimerRow>(
    `select d.id::text as delivery, l.name as type, d.key as id, d.payload::text as payload, d.attempts,
            d.run_at = '${HELD}' as held
       from ${db.schema}.delivery_lanes l
      cross join lateral (
        select * from ${db.schema}.deliveries d
         where d.lane = l.lane and d.segment = 0 and d.unique_key is not null and d.key is not null
           and ($2::text is null or d.key = $2::text)
         order by d.run_at, d.id
         limit ${Math.trunc(limit)}) d
      where l.kind = 'timer' and d.owner = l.name and ($1::text is null or l.name = $1::text)
      order by d.run_at, d.id
      limit ${Math.trunc(limit)}`,
    [type ?? null, id ?? null],
  )
  return rows.map((row) => {
    const { key, due } = parseJson(row.payload, { maxDepth: 1_010 }) as TimerPayload
    const { type: workflow, held } = row
    const numbers = { delivery: BigInt(row.delivery), dueAt: new Date(due), attempts: Number(row.attempts) }
    return { type: workflow, id: row.id, key: key ?? null, held, ...numbers }
  })
}

interface TimerRow {
  delivery: string
  type: string
  id: string
  payload: string
  attempts: number
  held: boolean
}

/** The log is needed after this position by instances that are not over; null when there are none. */
export async function selectNeededAfter(db: Queryable): Promise<bigint | null> {
  const { rows } = await db.query<{ needed: string | null }>(
    `select min(needed_after)::text as needed from ${db.schema}.workflow_instances where completed_at is null`,
  )
  return rows[0]!.needed === null ? null : BigInt(rows[0]!.needed)
}

function ms(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`
}
