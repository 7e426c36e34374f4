/** `ac.search`: finds and looks up documents, and takes them away. */
import { AftercommitError } from '../errors.ts'
import { parseJson } from '../events/index.ts'
import { type Database, sqlstateOf } from '../postgres/index.ts'
import { textOf } from './document-text.ts'
import { toHtml, withoutMarks } from './highlight.ts'
import { isLanguageName, unknownLanguage } from './language.ts'
import { buryDocument, selectDocument, selectHighlights, selectHits, selectIndexes } from './query-statements.ts'
import { type QueryText, toQueryText } from './query-text.ts'
import { removeGenerations, retireIndex, takeAwayIndex } from './upkeep-statements.ts'

export interface SearchOptions {
  /** At most this many hits; 20 unless told, 1000 at most. */
  readonly limit?: number | undefined
  /** Passes over so many of the best. */
  readonly offset?: number | undefined
  /** How the text becomes words, in place of the language of the index. */
  readonly language?: string | undefined
  /** Show where the words were found. */
  readonly highlight?: boolean | undefined
  /** Only documents of this tenant; of all unless told. */
  readonly tenant?: string | undefined
}

export interface SearchHit {
  readonly id: string
  readonly tenant: string | null
  /** Higher is better; comparable within one answer only. */
  readonly score: number
  readonly document: Record<string, unknown>
  /** HTML: the text is escaped, what was found stands in `<mark>`. Null unless asked for. */
  readonly highlight: string | null
}

export interface FoundDocument {
  readonly id: string
  readonly tenant: string | null
  /** Of the event that wrote it. */
  readonly position: bigint
  readonly document: Record<string, unknown>
  readonly writtenAt: Date
}

export interface SearchIndex {
  readonly name: string
  readonly language: string
  readonly documents: number
  /** Of the newest event that wrote into it; null when it is empty. */
  readonly position: bigint | null
  readonly writtenAt: Date | null
  /** A reindex is under way, or was killed within the last hour. */
  readonly isBuilding: boolean
}

/** The documents that `search` actions keep in this database (`kind = "postgres"`). */
export interface Search {
  /**
   * Best first. The text is what a person types: words, "phrases", -not, or; the last word may be unfinished. No text is
   * a mistake. An index that does not exist has no documents.
   */
  query(index: string, text: string, options?: SearchOptions): Promise<{ hits: SearchHit[] }>
  /** Without `tenant`, a document of events without one. */
  get(index: string, id: string, options?: { readonly tenant?: string | undefined }): Promise<FoundDocument | undefined>
  /** Takes one document away until a new event writes it, or a reindex. False when there is none. */
  remove(index: string, id: string, options?: { readonly tenant?: string | undefined }): Promise<boolean>
  /** Takes a whole index away; the next event that writes into it makes it anew. False when there is none. */
  removeIndex(index: string): Promise<boolean>
  indexes(): Promise<SearchIndex[]>
}

export function createSearch(database: Database): Search {
  async function query(index: string, text: string, options: SearchOptions = {}): Promise<{ hits: SearchHit[] }> {
    const { limit = 20, offset = 0, language = null, highlight = false, tenant = null } = options
    check(index, 'The name of an index')
    check(text, 'What is searched for')
    checkCount(limit, 'limit', 1, 1_000)
    checkCount(offset, 'offset', 0, 1_000_000)
    if (language !== null && !isLanguageName(language)) throw unknownLanguage(language)
    const asked = toQueryText(text)
    const rows = await selectHits(database, {
      index: storable(index),
      text: asked,
      language,
      tenant,
      limit,
      offset,
    }).catch((error) => {
      throw language !== null && sqlstateOf(error) === UNDEFINED_OBJECT ? unknownLanguage(language) : error
    })
    const found = rows.map((row) => ({ ...row, document: toDocument(row.document) }))
    const highlights = highlight && rows[0] ? await mark(rows[0].language, asked, found) : []
    return {
      hits: found.map(({ id, tenant: owner, score, document }, n) => ({
        id,
        tenant: owner === '' ? null : owner,
        score,
        document,
        highlight: highlights[n] ?? null,
      })),
    }
  }

  async function mark(
    language: string,
    asked: QueryText,
    found: readonly { readonly document: Record<string, unknown> }[],
  ): Promise<string[]> {
    const texts = found.map(({ document }) => {
      const { a, b, c } = textOf(document)
      return withoutMarks([a, b, c].filter((part) => part !== '').join('\n'))
    })
    return (await selectHighlights(database, language, asked, texts)).map(toHtml)
  }

  return {
    query,
    async get(index, id, { tenant } = {}) {
      const row = await selectDocument(database, storable(index), storable(tenant ?? ''), storable(id))
      return (
        row && {
          id: row.id,
          tenant: row.tenant === '' ? null : row.tenant,
          position: BigInt(row.pos),
          document: toDocument(row.document),
          writtenAt: new Date(row.writtenms),
        }
      )
    },
    remove: async (index, id, { tenant } = {}) =>
      buryDocument(database, storable(index), storable(tenant ?? ''), storable(id)),
    async removeIndex(index) {
      const name = storable(index)
      if (!(await retireIndex(database, name))) return false
      while ((await removeGenerations(database, name)) > 0);
      await takeAwayIndex(database, name)
      return true
    },
    async indexes() {
      return (await selectIndexes(database)).map(({ name, language, documents, pos, writtenms, building }) => ({
        name,
        language,
        documents: Number(documents),
        position: pos === null ? null : BigInt(pos),
        writtenAt: writtenms === null ? null : new Date(writtenms),
        isBuilding: building,
      }))
    },
  }
}

const UNDEFINED_OBJECT = '42704'

/** Postgres knows no U+0000, so nothing is called by it. */
function storable(text: string): string {
  return text.replaceAll('\u0000', '\ufffd')
}

function toDocument(json: string): Record<string, unknown> {
  return parseJson(json) as Record<string, unknown>
}

function check(value: unknown, what: string): asserts value is string {
  if (typeof value === 'string') return
  throw new AftercommitError('BAD_OPTION', `${what} must be text, so nothing was searched.`)
}

function checkCount(value: number, name: string, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return
  throw new AftercommitError('BAD_OPTION', `${name} must be a whole number from ${least} to ${most}.`)
}
