/**
 * Reads of the log by position and filter. The inner query names the window alone, in order, and ends with a limit whose
 * value the planner does not see: it then takes a tenth of the window for granted, and the one way to a tenth in order is
 * the index on position. In one flat query a type that no statistics are known of makes the planner expect a single row,
 * and a bitmap scan with a sort of the whole window looks as good to it. See docs/decisions/0016.
 */
import type { Queryable } from '../postgres/index.ts'
import { type EventRow, eventColumns } from './event-row.ts'

export interface WindowFilter {
  readonly after: bigint
  readonly upTo: bigint
  /** A POSIX regular expression over the type. */
  readonly type?: string | undefined
  readonly tenant?: string | undefined
  readonly limit: number
}

/** Events of a window that pass a filter, in position order. Whether they are final is the caller's question. */
export async function selectWindow(db: Queryable, wanted: WindowFilter): Promise<EventRow[]> {
  const { after, upTo, type, tenant, limit } = wanted
  const span = upTo > after ? upTo - after : 0n
  const values = [after.toString(), upTo.toString(), span.toString()]
  const conditions: string[] = []
  const add = (condition: string, value: string | undefined) => {
    if (value !== undefined) conditions.push(`${condition} ($${values.push(value)}::text)`)
  }
  add('type ~', type)
  add('tenant =', tenant)
  const { rows } = await db.query<EventRow>(
    `select ${eventColumns}
       from (select *
               from ${db.schema}.events
              where position > ($1::text)::bigint
                and position <= ($2::text)::bigint
              order by position
              limit (select ($3::text)::bigint)) part
      ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}
      order by position
      limit ${Math.trunc(limit)}`,
    values,
  )
  return rows
}
