/** Events of a table that existed before, appended in its order, batch by batch. */
import type { Database } from '../postgres/index.ts'
import { refusal } from './refusal.ts'

export interface ImportOptions {
  /** Columns that give the order; the primary key is among them. */
  readonly orderBy: readonly string[]
  /** Which column holds what. Default: columns of these names, where the table has them. */
  readonly columns?: Readonly<Partial<Record<ImportedPart, string>>> | undefined
  /** Rows in one transaction. Default: 1000. */
  readonly batch?: number | undefined
  readonly onProgress?: ((done: number) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

const PARTS = {
  type: 'type',
  payload: 'payload',
  aggregateType: 'aggregate_type',
  aggregateId: 'aggregate_id',
  tenant: 'tenant',
  changes: 'changes',
  previous: 'previous',
  metadata: 'metadata',
  occurredAt: 'occurred_at',
} as const

/** What a column of such a table can hold. */
export type ImportedPart = keyof typeof PARTS

export interface ImportReport {
  /** Rows that became events in this call. */
  readonly rows: number
}

/** Goes on where an earlier call ended; a row that was imported before appends nothing. */
export async function importEvents(
  database: Database,
  table: string,
  { orderBy, columns = {}, batch = 1_000, onProgress, signal }: ImportOptions,
): Promise<ImportReport> {
  const names = new Set(await selectColumns(database, table))
  const chosen = Object.entries(PARTS).flatMap(([part, fallback]) => {
    const column = columns[part as ImportedPart] ?? (names.has(fallback) ? fallback : undefined)
    return column === undefined ? [] : [[fallback, column] as const]
  })
  let rows = 0
  for (;;) {
    signal?.throwIfAborted()
    await database.query(`select ${database.schema}.make_room()`)
    const { rows: answers } = await database
      .query<{ done: number }>(
        `select ${database.schema}.import_batch(($1::text)::regclass,
           array(select pg_catalog.jsonb_array_elements_text(($2::text)::jsonb)), ($3::text)::jsonb, ($4::text)::integer) as done`,
        [table, JSON.stringify(orderBy), JSON.stringify(Object.fromEntries(chosen)), String(batch)],
      )
      .catch((error: unknown) => {
        throw refusal(error)
      })
    const { done } = answers[0]!
    if (done === 0) return { rows }
    rows += done
    onProgress?.(rows)
  }
}

async function selectColumns(database: Database, table: string): Promise<string[]> {
  const { rows } = await database.query<{ name: string }>(
    `select attname::text as name from pg_catalog.pg_attribute
      where attrelid = ($1::text)::regclass and attnum > 0 and not attisdropped`,
    [table],
  )
  return rows.map(({ name }) => name)
}
