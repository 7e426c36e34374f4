/** What there is to do, for people: rows by filter, and one at length. All of it only reads. */
import type { ErrorRecord } from '../dead-letters/index.ts'
import { parseJson } from '../events/index.ts'
import type { Parameter, Queryable } from '../postgres/index.ts'
import type { DeliveryKind } from './delivery.ts'
import { toOrigin } from './destination-names.ts'

/**
 * running: a live worker has it. paused: its name or its destination is. retrying: begun before, and to be tried again.
 * scheduled: due later. waiting: due now.
 */
export type DeliveryState = 'waiting' | 'running' | 'scheduled' | 'retrying' | 'paused'

/** One thing to do, as people see it. */
export interface DeliveryRecord {
  readonly id: bigint
  readonly kind: DeliveryKind
  readonly name: string
  readonly owner: string
  readonly state: DeliveryState
  /** Null when it goes nowhere in particular. */
  readonly destination: string | null
  readonly tenant: string | null
  readonly key: string | null
  readonly priority: number
  readonly attempts: number
  readonly createdAt: Date
  /** When it is due, or was. */
  readonly runAt: Date
  readonly firstAttemptAt: Date | null
  readonly lastAttemptAt: Date | null
  /** Of its last attempt. */
  readonly error: ErrorRecord | null
  /** The process that works on it. */
  readonly process: string | null
  /** The dead letter it was made from again. */
  readonly letter: bigint | null
  /** The event that asked for it; null where none did. */
  readonly eventId: string | null
}

export interface DeliveryDetails extends DeliveryRecord {
  readonly ordered: boolean
  readonly uniqueKey: string | null
  readonly payload: unknown
}

export interface DeliveryFilter {
  readonly kind?: DeliveryKind | undefined
  readonly name?: string | undefined
  readonly owner?: string | undefined
  /** By its name, or by an origin for every destination there. */
  readonly destination?: string | undefined
  readonly state?: DeliveryState | undefined
  readonly ids?: readonly bigint[] | undefined
  /** The events that asked for it. */
  readonly eventIds?: readonly string[] | undefined
  /** Nobody has it, and it is due later. */
  readonly later?: boolean | undefined
  /** Added after this one: the next page. */
  readonly after?: bigint | undefined
  /** Added before this one. */
  readonly before?: bigint | undefined
}

/** Rows are looked up segment by segment: the index of each begins with its number. */
const SEGMENTS = '(values (0::smallint), (1), (2), (3), (4)) as s(segment)'

/** `d` with what decides its state. A claim of a worker that is gone is nobody's. */
export function withState(db: Queryable, rows = `${db.schema}.deliveries`): string {
  return `${rows} d
       join ${db.schema}.delivery_lanes l on l.lane = d.lane
       left join ${db.schema}.delivery_pauses p on p.kind = l.kind and p.name = l.name
       left join ${db.schema}.destinations t on t.destination = l.destination and t.paused
       left join ${db.schema}.live_leases w on w.lease = d.worker and d.token is not null`
}

export const STATE = `case when w.lease is not null then 'running'
            when p.kind is not null or t.paused then 'paused'
            when d.attempts > 0 then 'retrying'
            when d.run_at > statement_timestamp() then 'scheduled'
            else 'waiting' end`

/** A destination is a type of action and where it goes, or one word. */
const WHERE = `substr(l.destination, strpos(l.destination, ' ') + 1)`

export function conditions(filter: DeliveryFilter): { where: string; values: Parameter[] } {
  const values: Parameter[] = []
  const where: string[] = ['true']
  const add = (condition: (parameter: string) => string, value: Parameter | undefined) => {
    if (value === undefined) return
    values.push(value)
    where.push(condition(`($${values.length}::text)`))
  }
  add((p) => `l.kind = ${p}`, filter.kind)
  add((p) => `l.name = ${p}`, filter.name)
  const origin = toOrigin(filter.destination ?? '')
  if (origin === undefined) add((p) => `l.destination = ${p}`, filter.destination)
  else add((p) => `${p}::jsonb ?| array[l.destination, ${WHERE}]`, JSON.stringify([filter.destination, origin]))
  add((p) => `d.owner = ${p}`, filter.owner)
  add((p) => `${STATE} = ${p}`, filter.state)
  add((p) => `d.id = any (${p}::bigint[])`, filter.ids && `{${filter.ids.join(',')}}`)
  add((p) => `d.event_id = any (array(select jsonb_array_elements_text(${p}::jsonb)))`, toJsonList(filter.eventIds))
  add((p) => `d.id > ${p}::bigint`, filter.after?.toString())
  add((p) => `d.id < ${p}::bigint`, filter.before?.toString())
  if (filter.later) where.push('d.token is null and d.run_at > statement_timestamp()')
  return { where: where.join(' and '), values }
}

function toJsonList(values: readonly string[] | undefined): string | undefined {
  return values && JSON.stringify(values)
}

/** Oldest first, unless the newest are wanted. */
export async function selectDeliveries(
  db: Queryable,
  filter: DeliveryFilter,
  { limit, newest }: { limit: number; newest: boolean },
): Promise<DeliveryRecord[]> {
  const { where, values } = conditions(filter)
  const order = newest ? 'desc' : 'asc'
  const { rows } = await db.query<DeliveryRow>(
    `select found.*
       from ${SEGMENTS}
      cross join lateral (
        select ${COLUMNS}, d.id as place
          from ${withState(db)}
         where d.segment = s.segment and ${where}
         order by d.id ${order}
         limit ${Math.trunc(limit)}) found
      order by place ${order}
      limit ${Math.trunc(limit)}`,
    values,
  )
  return rows.map(toRecord)
}

export async function selectDelivery(db: Queryable, id: bigint): Promise<DeliveryDetails | undefined> {
  const { where, values } = conditions({ ids: [id] })
  const { rows } = await db.query<DeliveryRow & { ordered: boolean; once: string | null; payload: string }>(
    `select ${COLUMNS}, d.ordered, d.unique_key as once, d.payload::text as payload
       from ${withState(db)}
      where d.segment in (0, 1, 2, 3, 4) and ${where}`,
    values,
  )
  const row = rows[0]
  if (row === undefined) return undefined
  const payload = parseJson(row.payload, { maxDepth: 1_010 })
  return { ...toRecord(row), ordered: row.ordered, uniqueKey: row.once, payload }
}

const COLUMNS = `d.id::text as id, l.kind, l.name, d.owner, ${STATE} as state, nullif(l.destination, '') as destination,
            nullif(l.tenant, '') as tenant, d.key, l.priority, d.attempts, ${ms('d.created_at')} as created,
            ${ms('d.run_at')} as due, ${ms('d.first_attempt_at')} as first, ${ms('d.last_attempt_at')} as last,
            d.error::text as error, w.process, d.letter::text as letter, d.event_id`

interface DeliveryRow {
  id: string
  kind: DeliveryKind
  name: string
  owner: string
  state: DeliveryState
  destination: string | null
  tenant: string | null
  key: string | null
  priority: number
  attempts: number
  created: number
  due: number
  first: number | null
  last: number | null
  error: string | null
  process: string | null
  letter: string | null
  event_id: string | null
}

function toRecord(row: DeliveryRow): DeliveryRecord {
  return {
    id: BigInt(row.id),
    kind: row.kind,
    name: row.name,
    owner: row.owner,
    state: row.state,
    destination: row.destination,
    tenant: row.tenant,
    key: row.key,
    priority: Number(row.priority),
    attempts: Number(row.attempts),
    createdAt: new Date(Number(row.created)),
    runAt: new Date(Number(row.due)),
    firstAttemptAt: toDate(row.first),
    lastAttemptAt: toDate(row.last),
    error: row.error === null ? null : JSON.parse(row.error),
    process: row.process,
    letter: row.letter === null ? null : BigInt(row.letter),
    eventId: row.event_id,
  }
}

export function toDate(milliseconds: number | null): Date | null {
  return milliseconds === null ? null : new Date(Number(milliseconds))
}

export function ms(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`
}
