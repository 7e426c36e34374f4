/** Which keys of ordered work have a row, or a dead letter that later ones wait behind. */
import { heldByLetters } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { DeliveryKind } from './delivery.ts'

/** What keeps one order: a key of a name. */
export interface OrderedKey {
  readonly kind: DeliveryKind
  readonly name: string
  /** Whose dead letters those of the name are. */
  readonly owner: string
  readonly key: string
}

/** Those of these that are held. Each costs a probe of an index or two, however much waits. */
export async function selectWaiting(
  db: Queryable,
  lines: readonly OrderedKey[],
): Promise<Pick<OrderedKey, 'name' | 'key'>[]> {
  const { rows } = await db.query<{ name: string; key: string }>(
    `with asked as materialized (
       select * from jsonb_to_recordset(($1::text)::jsonb) as a(kind text, name text, owner text, key text))
     select a.name, a.key
       from asked a
       -- Ordered rows share the lanes that are neither a tenant's nor urgent.
       join ${db.schema}.delivery_lanes l on l.kind = a.kind and l.name = a.name and l.tenant = '' and l.priority = 0
      cross join lateral (
        select from ${db.schema}.deliveries d
         where d.lane = l.lane and d.key = a.key and d.ordered
         limit 1) waits
     union
     select a.name, a.key
       from asked a
      cross join lateral (
        ${heldByLetters(db, '', 'x.kind = a.kind and x.owner = a.owner and x.key = a.key')}
         limit 1) parks`,
    [JSON.stringify(lines)],
  )
  return rows
}

/** All that are held; undefined when there are more. */
export async function selectAllWaiting(
  db: Queryable,
  most: number,
): Promise<Pick<OrderedKey, 'name' | 'key'>[] | undefined> {
  const { rows } = await db.query<{ name: string; key: string }>(
    `select l.name, h.key
       from ((select d.lane, d.key
                from ${db.schema}.deliveries d
               where d.ordered
               limit ($1::text)::integer)
             union all
             (${heldByLetters(db, `(x.delivery ->> 'lane')::integer, x.key`)}
               limit ($1::text)::integer)) h(lane, key)
       join ${db.schema}.delivery_lanes l on l.lane = h.lane
      limit ($1::text)::integer`,
    [String(most + 1)],
  )
  return rows.length > most ? undefined : rows
}
