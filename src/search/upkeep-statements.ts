/** Generations that nobody reads any more, tombstones that have done their service, indexes that are to go. */
import type { Database, Queryable } from '../postgres/index.ts'

/** So many rows at a time: a statement that runs for minutes would lose its connection. */
const CHUNK = 10_000

/** Removes some of what is in no generation in use or being built; answers how much. Again until it is nothing. */
export async function removeGenerations(db: Queryable, index?: string): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.search_documents d
      where (index_name, generation, tenant, id) in (
        select s.index_name, s.generation, s.tenant, s.id
          from ${db.schema}.search_indexes i
          join ${db.schema}.search_documents s
            on s.index_name = i.name
           and (s.generation < i.generation
                or s.generation > i.generation and s.generation is distinct from i.building)
         where $1::text is null or i.name = $1::text
         limit ${CHUNK})`,
    [index ?? null],
  )
  return rowCount
}

export async function removeTombstones(db: Queryable, days: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.search_documents
      where (index_name, generation, tenant, id) in (
        select index_name, generation, tenant, id
          from ${db.schema}.search_documents
         where deleted and written_at < clock_timestamp() - make_interval(days => ($1::text)::integer)
         limit ${CHUNK})
        and deleted`,
    [String(days)],
  )
  return rowCount
}

/** A reindex that gave no sign of life for so long was killed: events need not be written twice any more. */
export async function abandonSilent(db: Queryable, minutes: number): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `update ${db.schema}.search_indexes
        set building = null, building_language = null, building_seen_at = null
      where building_seen_at < clock_timestamp() - make_interval(mins => ($1::text)::integer)
     returning name`,
    [String(minutes)],
  )
  return rows.map(({ name }) => name)
}

/** From now on it is empty. Waits for those who are writing. */
export function retireIndex(db: Database, index: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const { rowCount } = await tx.query(`select from ${db.schema}.search_indexes where name = $1::text for update`, [
      index,
    ])
    await tx.query(
      `update ${db.schema}.search_indexes
          set generation = last_generation + 1, last_generation = last_generation + 1,
              building = null, building_language = null, building_seen_at = null
        where name = $1::text`,
      [index],
    )
    return rowCount === 1
  }, READ_COMMITTED)
}

/** Unless somebody has written into it meanwhile. */
export function takeAwayIndex(db: Database, index: string): Promise<void> {
  return db.transaction(async (tx) => {
    // The lock first, in a statement of its own: the next one sees what writers had written until then.
    await tx.query(`select from ${db.schema}.search_indexes where name = $1::text for update`, [index])
    await tx.query(
      `delete from ${db.schema}.search_indexes i
        where i.name = $1::text
          and not exists (select from ${db.schema}.search_documents d where d.index_name = i.name)`,
      [index],
    )
  }, READ_COMMITTED)
}

const READ_COMMITTED = { isolation: 'read committed' } as const
