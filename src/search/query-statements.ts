/** Finding documents. */
import type { Parameter, Queryable } from '../postgres/index.ts'
import { MARK_END, MARK_START } from './highlight.ts'
import type { QueryText } from './query-text.ts'

export interface HitRow {
  readonly id: string
  readonly tenant: string
  readonly score: number
  readonly document: string
  /** What the words were made with. */
  readonly language: string
}

export interface HitsRequest {
  readonly index: string
  readonly text: QueryText
  /** Null: that of the index. */
  readonly language: string | null
  /** Null: of all. */
  readonly tenant: string | null
  readonly limit: number
  readonly offset: number
}

/** Best first; among equals the one that changed last. */
export async function selectHits(db: Queryable, request: HitsRequest): Promise<HitRow[]> {
  const { rows } = await db.query<HitRow>(
    `with searched as materialized (
       select name, generation, coalesce($2::text, language) as language
         from ${db.schema}.search_indexes
        where name = $1::text
     ),
     asked as materialized (
       select s.*, ${queryOf('s.language', 3)} as query from searched s
     )
     select d.id, d.tenant, ts_rank(d.words, a.query)::float8 as score, d.document::text as document, a.language
       from asked a
       join ${db.schema}.search_documents d
         on d.index_name = a.name and d.generation = a.generation and d.words @@ a.query
      where not d.deleted
        and ($7::text is null or d.tenant = $7::text)
      order by score desc, d.position desc, d.tenant, d.id
      limit ($8::text)::integer offset ($9::text)::integer`,
    [
      request.index,
      request.language,
      ...parametersOf(request.text),
      request.tenant,
      String(request.limit),
      String(request.offset),
    ],
  )
  return rows
}

/** The parts of each text that hold what was found, in order. */
export async function selectHighlights(
  db: Queryable,
  language: string,
  text: QueryText,
  documents: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ marked: string }>(
    `select ts_headline($1::text::regconfig, given.text, ${queryOf('$1::text', 3)}, $7::text) as marked
       from jsonb_array_elements_text(($2::text)::jsonb) with ordinality as given (text, n)
      order by given.n`,
    [language, JSON.stringify(documents), ...parametersOf(text), HEADLINE],
  )
  return rows.map(({ marked }) => marked)
}

const HEADLINE = `StartSel=${MARK_START}, StopSel=${MARK_END}, MaxFragments=2, MinWords=5, MaxWords=20, ShortWord=0, FragmentDelimiter=" … "`

/** Takes four parameters from `$first` on: all of it, what stands before the last word, that as a prefix, and how they join. */
function queryOf(language: string, first: number): string {
  const [all, before, word, joins] = [0, 1, 2, 3].map((n) => `$${first + n}::text`)
  const prefix = `to_tsquery((${language})::regconfig, ${word})`
  const start = `websearch_to_tsquery((${language})::regconfig, ${before})`
  return `websearch_to_tsquery((${language})::regconfig, ${all})
            || case when ${word} is null then ''::tsquery
                    when ${joins} = 'or' then ${start} || ${prefix}
                    else ${start} && ${prefix} end`
}

function parametersOf({ all, prefix }: QueryText): Parameter[] {
  return [all, prefix?.before ?? '', prefix?.word ?? null, prefix?.joins ?? 'and']
}

export interface DocumentRow {
  readonly tenant: string
  readonly id: string
  readonly pos: string
  readonly document: string
  readonly writtenms: number
}

export async function selectDocument(
  db: Queryable,
  index: string,
  tenant: string,
  id: string,
): Promise<DocumentRow | undefined> {
  const { rows } = await db.query<DocumentRow>(
    `select d.tenant, d.id, d.position::text as pos, d.document::text as document,
            (extract(epoch from d.written_at) * 1000)::float8 as writtenms
       from ${db.schema}.search_indexes i
       join ${db.schema}.search_documents d on d.index_name = i.name and d.generation = i.generation
      where i.name = $1::text
        and d.tenant = $2::text
        and d.id = $3::text
        and not d.deleted`,
    [index, tenant, id],
  )
  return rows[0]
}

/** Leaves a tombstone above every event there is: only one that is emitted from now on brings it back. */
export async function buryDocument(db: Queryable, index: string, tenant: string, id: string): Promise<boolean> {
  const { rows } = await db.query<{ generation: number; current: number }>(
    `with holding as materialized (
       select name, generation, building from ${db.schema}.search_indexes where name = $1::text for key share
     )
     update ${db.schema}.search_documents d
        set deleted = true, document = null, words = null, written_at = clock_timestamp(),
            position = greatest(d.position, (select max(e.position) from ${db.schema}.events e))
       from holding i
      where d.index_name = i.name
        and d.generation in (i.generation, i.building)
        and d.tenant = $2::text
        and d.id = $3::text
        and not d.deleted
     returning d.generation, i.generation as current`,
    [index, tenant, id],
  )
  return rows.some(({ generation, current }) => generation === current)
}

export interface IndexRow {
  readonly name: string
  readonly language: string
  readonly documents: string
  readonly pos: string | null
  readonly writtenms: number | null
  readonly building: boolean
}

export async function selectIndexes(db: Queryable): Promise<IndexRow[]> {
  const { rows } = await db.query<IndexRow>(
    `select i.name, i.language, i.building is not null as building,
            count(d.id) filter (where not d.deleted)::text as documents,
            max(d.position)::text as pos,
            (extract(epoch from max(d.written_at)) * 1000)::float8 as writtenms
       from ${db.schema}.search_indexes i
       left join ${db.schema}.search_documents d on d.index_name = i.name and d.generation = i.generation
      group by i.name
      order by i.name`,
  )
  return rows
}
