/** What operators change: due times, and rows that go. */
import { discardLettersOfRows } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { conditions, type DeliveryFilter, withState } from './inspect-statements.ts'

/** What was changed, for the answer and for the audit. */
export interface Changed {
  readonly ids: readonly bigint[]
  /** `effect mail`, each once. */
  readonly names: readonly string[]
}

/** Due now: what nobody has and is due later. A claim looks only at rows that are due, so it cannot be in between. */
export async function makeDue(db: Queryable, filter: DeliveryFilter): Promise<Changed> {
  const { where, values } = conditions({ ...filter, later: true })
  const { rows } = await db.query<ChangedRow>(
    `with chosen as materialized (
       select d.segment, d.id
         from ${withState(db)}
        where ${where}
          for update of d)
     update ${db.schema}.deliveries d
        set run_at = clock_timestamp()
       from chosen c, ${db.schema}.delivery_lanes l
      where d.segment = c.segment and d.id = c.id and d.token is null and l.lane = d.lane
     returning d.id::text as id, l.kind || ' ' || l.name as name`,
    values,
  )
  return toChanged(rows)
}

export async function selectIds(db: Queryable, filter: DeliveryFilter): Promise<bigint[]> {
  const { where, values } = conditions(filter)
  const { rows } = await db.query<{ id: string }>(
    `select d.id::text as id from ${withState(db)} where ${where} order by d.id`,
    values,
  )
  return rows.map(({ id }) => BigInt(id))
}

export interface Removed extends Changed {
  /** Some of them were claimed: whoever has them must be told. */
  readonly claimed: boolean
}

/**
 * Takes rows away, claimed or not; no completion finds them then. A workflow's effect comes back with its number, without a
 * claim and due at once, whatever its destination: a worker tells the workflow. The row is deleted and inserted, because an
 * update that moves it to another segment would fail statements that wait for it. The dead letter that a row was made from
 * again is discarded. A row that fails at this very moment moves to another segment, unseen by this statement: repeat it
 * until none is left.
 */
export async function removeDeliveries(
  db: Queryable,
  ids: readonly bigint[],
  mark: { who: string; reason: string },
): Promise<Removed> {
  const { rows } = await db.query<ChangedRow & { claimed: boolean }>(
    `with chosen as materialized (
       select d.*, l.kind, l.name, l.tenant, l.priority,
              l.kind = 'effect' and d.payload ? 'generation' and not d.payload ? 'cancelled' as tells
         from ${db.schema}.deliveries d
         join ${db.schema}.delivery_lanes l on l.lane = d.lane
        where d.segment in (0, 1, 2, 3, 4) and d.id = any (($1::text)::bigint[])
          for update of d),
     removed as (
       delete from ${db.schema}.deliveries d
        using chosen c
        where d.segment = c.segment and d.id = c.id
       returning c.*),
     told as (
       insert into ${db.schema}.deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, created_at,
                                            first_attempt_at, last_attempt_at, event_id)
       select 0, id, ${db.schema}.delivery_lane(kind, name, '', tenant, priority), owner, key, ordered, unique_key,
              payload || jsonb_build_object('cancelled',
                jsonb_build_object('attempts', attempts, 'reason', $2::text || ' cancelled it: ' || $3::text)),
              created_at, first_attempt_at, last_attempt_at, event_id
         from removed
        where tells),
     discarded as (
       ${discardLettersOfRows(db, 'removed', { who: '$2::text', reason: '$3::text' })})
     select r.id::text as id, r.kind || ' ' || r.name as name, r.token is not null as claimed
       from removed r`,
    [`{${ids.join(',')}}`, mark.who, mark.reason],
  )
  return { ...toChanged(rows), claimed: rows.some(({ claimed }) => claimed) }
}

/** Workers see that it has grown and look at what they hold, and at what is paused. Answers the new one. */
export async function raiseVersion(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ version: string }>(
    `update ${db.schema}.delivery_state set version = version + 1 returning version::text as version`,
  )
  return BigInt(rows[0]!.version)
}

interface ChangedRow {
  id: string
  name: string
}

function toChanged(rows: readonly ChangedRow[]): Changed {
  return { ids: rows.map(({ id }) => BigInt(id)), names: [...new Set(rows.map(({ name }) => name))] }
}
