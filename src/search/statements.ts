/** Writing documents. Rows are written in the order of their key, so that two writers never wait for each other in a circle. */
import type { Queryable } from '../postgres/index.ts'
import type { DocumentWrite } from './document.ts'
import { textOf } from './document-text.ts'

/** Whether the index is there, and whether the document was written into the generation that is in use, or being built. */
export interface WrittenRow {
  readonly known: boolean
  readonly written: boolean
}

/** Into the generation in use, and into the one that is being built if there is one. One answer per write, in order. */
export function writeDocuments(db: Queryable, writes: readonly DocumentWrite[]): Promise<WrittenRow[]> {
  return write(
    db,
    `select name, generation, language, generation as answered from indexes
      union all
     select name, building, building_language, generation from indexes where building is not null`,
    writes.map((one) => toJson(one)),
  )
}

export interface BuiltWrite {
  readonly write: DocumentWrite
  readonly generation: number
}

/** Only into the generation that is being built; not known where another reindex has begun since. */
export function buildDocuments(db: Queryable, writes: readonly BuiltWrite[]): Promise<WrittenRow[]> {
  return write(
    db,
    `select distinct i.name, i.building as generation, i.building_language as language, i.building as answered
       from indexes i
       join given g on g.index_name = i.name and g.generation = i.building`,
    writes.map((one) => toJson(one.write, one.generation)),
  )
}

/** FOR KEY SHARE sees a row that was changed meanwhile as it is now, not as it was when the statement began. */
async function write(db: Queryable, targets: string, rows: readonly string[]): Promise<WrittenRow[]> {
  const { rows: answers } = await db.query<WrittenRow>(
    `with given as materialized (
       select *
         from jsonb_to_recordset(($1::text)::jsonb) as g
              (n integer, index_name text, generation integer, tenant text, id text, position bigint, document jsonb,
               a text, b text, c text)
     ),
     indexes as materialized (
       select name, generation, language, building, building_language
         from ${db.schema}.search_indexes
        where name in (select index_name from given)
        order by name
          for key share
     ),
     targets as materialized (${targets}),
     written as (
       insert into ${db.schema}.search_documents as kept
              (index_name, generation, tenant, id, position, deleted, document, words)
       select g.index_name, t.generation, g.tenant, g.id, g.position, g.document is null, g.document,
              setweight(to_tsvector(t.language::regconfig, g.a), 'A')
                || setweight(to_tsvector(t.language::regconfig, g.b), 'B')
                || setweight(to_tsvector(t.language::regconfig, g.c), 'C')
         from given g
         join targets t on t.name = g.index_name
        order by g.index_name, t.generation, g.tenant, g.id
           on conflict (index_name, generation, tenant, id) do update
          set position = excluded.position, deleted = excluded.deleted, document = excluded.document,
              words = excluded.words, written_at = excluded.written_at
        where excluded.position >= kept.position
       returning index_name, generation, tenant, id
     )
     select t.name is not null as known, w.id is not null as written
       from given g
       left join (select distinct name, answered from targets) t on t.name = g.index_name
       left join written w
         on w.index_name = g.index_name and w.generation = t.answered and w.tenant = g.tenant and w.id = g.id
      order by g.n`,
    [`[${rows.map((row, n) => `{"n":${n},${row.slice(1)}`).join(',')}]`],
    { repeated: true },
  )
  return answers
}

function toJson({ index, tenant, id, position, document, json }: DocumentWrite, generation?: number): string {
  const fields = { index_name: index, generation, tenant: tenant ?? '', id, position: position.toString() }
  if (document === null) return JSON.stringify(fields)
  const text = JSON.stringify({ ...fields, ...textOf(document) })
  return `${text.slice(0, -1)},"document":${json}}`
}

/** Makes the indexes that are not there. */
export async function addIndexes(
  db: Queryable,
  indexes: readonly { readonly index: string; readonly language: string }[],
): Promise<void> {
  await db.query(
    `insert into ${db.schema}.search_indexes (name, language)
     select distinct on (name) name, language
       from jsonb_to_recordset(($1::text)::jsonb) as given (name text, language text)
      order by name
         on conflict (name) do nothing`,
    [JSON.stringify(indexes.map(({ index, language }) => ({ name: index, language })))],
  )
}
