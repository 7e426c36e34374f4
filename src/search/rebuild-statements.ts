/** A generation from its first document to its use. Every statement names the number it was given, and so fails a successor's. */
import type { Database, Queryable } from '../postgres/index.ts'

export interface BuildRow {
  readonly name: string
  readonly generation: number
}

/** Begins a new generation of every index named, and of every other that is there when `all`. Takes over from any other reindex. */
export function beginGenerations(
  db: Database,
  names: readonly string[],
  all: boolean,
  language: string,
): Promise<BuildRow[]> {
  return db.transaction(async (tx) => {
    await tx.query(
      `insert into ${db.schema}.search_indexes (name, language)
       select name, $2::text from jsonb_array_elements_text(($1::text)::jsonb) as given (name)
        order by name
           on conflict (name) do nothing`,
      [JSON.stringify(names), language],
    )
    // The lock first, and from here on nobody writes who does not know of the new generation.
    await tx.query(
      `select from ${db.schema}.search_indexes
        where $2::boolean or name in (select jsonb_array_elements_text(($1::text)::jsonb))
        order by name
          for update`,
      [JSON.stringify(names), all],
    )
    const { rows } = await tx.query<BuildRow>(
      `update ${db.schema}.search_indexes
          set building = last_generation + 1, last_generation = last_generation + 1, building_language = $3::text,
              building_seen_at = clock_timestamp()
        where $2::boolean or name in (select jsonb_array_elements_text(($1::text)::jsonb))
       returning name, building as generation`,
      [JSON.stringify(names), all, language],
    )
    return rows.map(({ name, generation }) => ({ name, generation: Number(generation) }))
  }, READ_COMMITTED)
}

/** The sign of life that keeps upkeep from giving it up. */
export async function touchGenerations(db: Queryable, built: readonly BuildRow[]): Promise<void> {
  await db.query(
    `update ${db.schema}.search_indexes i
        set building_seen_at = clock_timestamp()
       from jsonb_to_recordset(($1::text)::jsonb) as g (name text, generation integer)
      where i.name = g.name
        and i.building = g.generation`,
    [JSON.stringify(built)],
  )
}

export interface KeptRow {
  readonly tenant: string
  readonly id: string
  readonly pos: string
  readonly document: string | null
}

/** Where history was read: above `after`, up to `head`. */
export interface Span {
  readonly after: bigint
  readonly head: bigint
}

/** Documents of the generation in use whose last event was not read and that the new one lacks, some at a time. */
export async function selectUnread(
  db: Queryable,
  { name, generation }: BuildRow,
  { after, head }: Span,
  above: Pick<KeptRow, 'tenant' | 'id'> | null,
  limit: number,
): Promise<KeptRow[]> {
  const { rows } = await db.query<KeptRow>(
    `select d.tenant, d.id, d.position::text as pos, d.document::text as document
       from ${db.schema}.search_indexes i
       join ${db.schema}.search_documents d on d.index_name = i.name and d.generation = i.generation
      where i.name = $1::text
        and (d.position <= ($3::text)::bigint or d.position > ($4::text)::bigint)
        and ($5::text is null or (d.tenant, d.id) > ($5::text, $6::text))
        and not exists (
          select from ${db.schema}.search_documents n
           where n.index_name = d.index_name
             and n.generation = ($2::text)::integer
             and n.tenant = d.tenant
             and n.id = d.id
             and n.position >= d.position)
      order by d.tenant, d.id
      limit ($7::text)::integer`,
    [
      name,
      String(generation),
      after.toString(),
      head.toString(),
      above?.tenant ?? null,
      above?.id ?? null,
      String(limit),
    ],
  )
  return rows
}

/** Puts it in use. False when another reindex has begun since: then nothing was changed. */
export function useGeneration(db: Database, { name, generation }: BuildRow): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(`select from ${db.schema}.search_indexes where name = $1::text for update`, [name])
    const { rowCount } = await tx.query(
      `update ${db.schema}.search_indexes
          set generation = building, language = building_language,
              building = null, building_language = null, building_seen_at = null
        where name = $1::text
          and building = ($2::text)::integer`,
      [name, String(generation)],
    )
    return rowCount === 1
  }, READ_COMMITTED)
}

/** What was in use stays so. An index that was made for this and holds nothing is taken away again. */
export async function abandonGeneration(db: Queryable, { name, generation }: BuildRow): Promise<void> {
  await db.query(
    `update ${db.schema}.search_indexes
        set building = null, building_language = null, building_seen_at = null
      where name = $1::text
        and building = ($2::text)::integer`,
    [name, String(generation)],
  )
}

const READ_COMMITTED = { isolation: 'read committed' } as const
