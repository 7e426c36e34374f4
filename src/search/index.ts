/**
 * Documents in Postgres, found by their words. A document belongs to the event that wrote it: of two writes the one with
 * the higher position wins, whatever arrives last, and a deletion is remembered long enough for late retries to lose
 * against it. Relies on the two tables of migrations/0007_search.sql and on nothing of observers, which write here.
 *
 * Start with document.ts (what is written), then writer.ts (how events write), query.ts (how they are found) and
 * rebuild.ts (how an index is made anew while both go on).
 */
export { type DocumentWrite, keyOf, type WriteOutcome } from './document.ts'
export { diagnoseIndexes } from './findings.ts'

export { beginRebuild, type Rebuild, type RebuildOptions } from './rebuild.ts'
export type { Span } from './rebuild-statements.ts'
export {
  createSearch,
  type FoundDocument,
  type Search,
  type SearchHit,
  type SearchIndex,
  type SearchOptions,
} from './search.ts'
export { keepSearch } from './upkeep.ts'
export { createDocumentWriter, type DocumentWriter } from './writer.ts'
