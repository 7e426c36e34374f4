/** States of projections: read and written as a set, one statement for a batch. */
import { discardForReset } from '../dead-letters/index.ts'
import { parseJson, stringifyJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Folded } from './fold.ts'

/** A state is the projection's own business; what Postgres takes is the limit. */
const LIMITS = { maxBytes: 256 * 1024 * 1024, maxDepth: 1_000, name: 'state' }

export async function selectStatesOf(
  db: Queryable,
  projection: string,
  ids: readonly string[],
): Promise<Map<string, unknown>> {
  const { rows } = await db.query<{ id: string; state: string }>(
    `select id, state::text as state
       from ${db.schema}.projection_states
      where projection = $1::text
        and id = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))`,
    [projection, stringifyJson(ids, { ...LIMITS, name: 'key' })],
  )
  return new Map(rows.map(({ id, state }) => [id, parseState(state)]))
}

/** A state of null deletes. */
export async function writeStates(
  db: Queryable,
  projection: string,
  states: ReadonlyMap<string, Folded>,
): Promise<void> {
  if (states.size === 0) return
  const rows = [...states].map(
    ([id, { state, position }]) =>
      `{"id":${JSON.stringify(id)},"position":"${position}","state":${stringifyJson(state, LIMITS)}}`,
  )
  await db.query(
    `with folded as (
       select f ->> 'id' as id, (f ->> 'position')::bigint as position, f -> 'state' as state
         from jsonb_array_elements(($2::text)::jsonb) f),
     deleted as (
       delete from ${db.schema}.projection_states p
        using folded f
        where p.projection = $1::text
          and p.id = f.id
          and f.state = 'null')
     insert into ${db.schema}.projection_states (projection, id, state, position)
     select $1::text, id, state, position
       from folded
      where state <> 'null'
     on conflict (projection, id) do update
       set state = excluded.state, position = excluded.position`,
    [projection, `[${rows.join(',')}]`],
  )
}

export interface StateRow {
  readonly id: string
  readonly state: unknown
  readonly position: bigint
}

export async function selectPage(
  db: Queryable,
  projection: string,
  after: string | null,
  limit: number,
): Promise<StateRow[]> {
  const { rows } = await db.query<{ id: string; state: string; pos: string }>(
    `select id, state::text as state, position::text as pos
       from ${db.schema}.projection_states
      where projection = $1::text
        and ($2::text is null or id > $2::text)
      order by id
      limit ${limit}`,
    [projection, after],
  )
  return rows.map(({ id, state, pos }) => ({ id, state: parseState(state), position: BigInt(pos) }))
}

/** What has to be gone before everything is folded anew: states, and letters of events that will come again. */
export async function clearProjection(db: Queryable, projection: string): Promise<number> {
  const { rowCount } = await db.query(
    `with parked as (delete from ${db.schema}.parked where owner = $1::text),
     letters as (
       ${discardForReset(db, '$1::text')})
     delete from ${db.schema}.projection_states where projection = $1::text`,
    [projection],
  )
  return rowCount
}

/** The oldest position that can still be folded. */
export async function selectKeptFrom(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ kept: string }>(`select kept_from::text as kept from ${db.schema}.log_state`)
  return BigInt(rows[0]!.kept)
}

function parseState(text: string): unknown {
  return parseJson(text, { maxDepth: 1_000 })
}
