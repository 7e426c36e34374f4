/**
 * Reads of the log by position and filter. The inner query names the window alone, in order, and ends with a limit whose
 * value the planner does not see: it then takes a tenth of the window for granted, and the one way to a tenth in order is
 * the index on position. In one flat query a type that no statistics are known of makes the planner expect a single row,
 * and a bitmap scan with a sort of the whole window looks as good to it. See docs/decisions/0016.
 */
import type { TypeBounds } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type EventRow, eventColumns } from './event-row.ts'
import { PAGE_BYTES } from './page-size.ts'
import { toTimestampText } from './timestamp-text.ts'

export interface EventConditions {
  /** A POSIX regular expression over the type. */
  readonly type?: string | undefined
  /** Events of other types are left out; those that are left still have to be matched. */
  readonly types?: TypeBounds | undefined
  readonly tenant?: string | undefined
  readonly correlationId?: string | undefined
  /** Recorded at this time or later. */
  readonly since?: Date | undefined
  readonly fromVersion?: number | undefined
  readonly toVersion?: number | undefined
}

export interface WindowFilter extends EventConditions {
  readonly after: bigint
  readonly upTo: bigint
  readonly limit: number
  readonly newestFirst?: boolean | undefined
  /** What the page may weigh, in bytes. Default: 8,000,000. */
  readonly maxBytes?: number | undefined
}

/**
 * Events of a window that pass a filter, in position order: at least one if there is one, then as many as a page may weigh
 * (`isFull`). Whether they are final is the caller's question.
 */
export async function selectWindow(db: Queryable, wanted: WindowFilter): Promise<EventRow[]> {
  const { after, upTo, limit, newestFirst = false, maxBytes = PAGE_BYTES } = wanted
  const span = upTo > after ? upTo - after : 0n
  const values = [after.toString(), upTo.toString(), span.toString()]
  const way = newestFirst ? 'desc' : 'asc'
  const { rows } = await db.query<EventRow>(
    `select ${eventColumns}
       from (select *, sum(bytes) over (order by position ${way} rows unbounded preceding) - bytes as bytes_before
               from (select *
                       from ${db.schema}.events
                      where position > ($1::text)::bigint
                        and position <= ($2::text)::bigint
                      order by position ${way}
                      limit (select ($3::text)::bigint)) part
              where ${conditionsOf(wanted, values)}) passed
      where bytes_before < ${Math.trunc(maxBytes)}
      order by position ${way}
      limit ${Math.trunc(limit)}`,
    values,
  )
  return rows
}

export interface StreamFilter extends EventConditions {
  readonly aggregate: { readonly type: string; readonly id: string }
  readonly after?: bigint | undefined
  readonly before?: bigint | undefined
  readonly limit: number
  readonly newestFirst?: boolean | undefined
}

/**
 * Events of one aggregate that pass a filter. Bounds and order name all columns of the index on aggregates: with equality
 * and an order by position alone, a server that takes an aggregate for common walks the whole log in search of it. The
 * planner does not see the bounds, so that it never takes the aggregate for empty and sorts it.
 */
export async function selectStream(db: Queryable, wanted: StreamFilter): Promise<EventRow[]> {
  const { aggregate, after = 0n, before, limit, newestFirst = false } = wanted
  const upTo = before === undefined ? LAST_POSITION : (before - 1n).toString()
  const values = [aggregate.type, aggregate.id, after.toString(), LAST_POSITION, upTo]
  const way = newestFirst ? 'desc' : 'asc'
  const order = `order by aggregate_type ${way}, aggregate_id ${way}, position ${way}`
  const { rows } = await db.query<EventRow>(
    `select ${eventColumns}
       from (select *
               from ${db.schema}.events
              where (aggregate_type, aggregate_id, position) >
                    ((select $1::text), (select $2::text), (select ($3::text)::bigint))
                and (aggregate_type, aggregate_id, position) <=
                    ((select $1::text), (select $2::text), (select ($5::text)::bigint))
              ${order}
              limit (select ($4::text)::bigint)) part
      where ${conditionsOf(wanted, values)}
      ${order}
      limit ${Math.trunc(limit)}`,
    values,
  )
  return rows
}

const LAST_POSITION = (2n ** 63n - 1n).toString()

/** Adds the values that the conditions name. */
function conditionsOf(wanted: EventConditions, values: string[]): string {
  const conditions = ['true']
  const add = (condition: string, value: string | undefined, type = 'text') => {
    if (value !== undefined) conditions.push(`${condition} ($${values.push(value)}::text)::${type}`)
  }
  add('type ~', wanted.type)
  if (wanted.types !== undefined) {
    const [names, prefixes] = [wanted.types.names, wanted.types.prefixes].map((list) => values.push(toTextArray(list)))
    conditions.push(`(type = any(($${names}::text)::text[]) or type ^@ any(($${prefixes}::text)::text[]))`)
  }
  add('tenant =', wanted.tenant)
  add(`metadata ->> 'correlation_id' =`, wanted.correlationId)
  add('recorded_at >=', wanted.since && toTimestampText(wanted.since), 'timestamptz')
  add('version >=', wanted.fromVersion?.toString(), 'bigint')
  add('version <=', wanted.toVersion?.toString(), 'bigint')
  return conditions.join(' and ')
}

/** Event types hold no quotation mark and no backslash. Without the marks, PostgreSQL would read the type `null` as NULL. */
function toTextArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text}"`).join(',')}}`
}

/** The highest position that is visible, 0 in an empty log. */
export async function selectHead(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ head: string }>(
    `select coalesce(max(position), 0)::text as head from ${db.schema}.events`,
  )
  return BigInt(rows[0]!.head)
}
