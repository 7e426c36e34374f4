/** Writes as an observer makes them, and an index as anybody sees it. */
import type { Database } from '../../src/postgres/index.ts'
import { createDocumentWriter, createSearch, type DocumentWrite } from '../../src/search/index.ts'
import { openTestDatabase } from '../support/database.ts'

export async function openSearch({ major = 18 }: { major?: 18 | 14 } = {}) {
  const { db, url } = await openTestDatabase({ major, migrated: true })
  return { db, url, writer: createDocumentWriter(db), search: createSearch(db) }
}

type Words = Partial<Omit<DocumentWrite, 'document' | 'json' | 'position'>>

export function upsert(position: number, document: Record<string, unknown>, words: Words = {}): DocumentWrite {
  return { ...DEFAULTS, ...words, position: BigInt(position), document, json: JSON.stringify(document) }
}

export function remove(position: number, words: Words = {}): DocumentWrite {
  return { ...DEFAULTS, ...words, position: BigInt(position), document: null, json: null }
}

const DEFAULTS = { index: 'products', tenant: null, id: '1', language: 'simple' }

/** Everything that can be seen of an index: documents by id, with their position. */
export async function contentOf(db: Database, index = 'products'): Promise<Record<string, [bigint, unknown]>> {
  const { rows } = await db.query<{ id: string; pos: string; document: unknown }>(
    `select d.id, d.position::text as pos, d.document
       from ${db.schema}.search_indexes i
       join ${db.schema}.search_documents d on d.index_name = i.name and d.generation = i.generation
      where i.name = $1::text and not d.deleted
      order by d.id`,
    [index],
  )
  return Object.fromEntries(rows.map(({ id, pos, document }) => [id, [BigInt(pos), document]]))
}
