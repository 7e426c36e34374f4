/** Statements about captured tables. What they do is in sql/capture. */
import { type Queryable, quoteLiteral } from '../postgres/index.ts'
import type { CaptureOptions } from './declared.ts'

export interface CapturedTable {
  /** With its schema, quoted where needed. */
  readonly table: string
  readonly aggregate: string
  readonly omit: readonly string[]
  readonly truncate: 'event' | 'deny' | 'ignore'
  readonly each: 'statement' | 'row'
  readonly unchanged: boolean
  readonly since: Date
  /** False when the table was dropped. */
  readonly exists: boolean
  /** Triggers that were dropped, disabled or outdated, with their tables. */
  readonly missing: readonly string[]
}

interface CapturedRow extends Omit<CapturedTable, 'table' | 'aggregate' | 'since' | 'exists'> {
  readonly aggregate_type: string
  readonly table_name: string
  readonly relation: string | null
  readonly captured_at: Date
}

export async function selectCaptured(db: Queryable): Promise<CapturedTable[]> {
  const { rows } = await db.query<CapturedRow>(
    `select aggregate_type, table_name, relation::text as relation, omit, truncate, each, unchanged, captured_at, missing
       from ${db.schema}.captured()`,
  )
  return rows.map(({ aggregate_type, table_name, relation, captured_at, ...row }) => ({
    table: table_name,
    aggregate: aggregate_type,
    ...row,
    since: captured_at,
    exists: relation !== null,
  }))
}

/** The name of a table with its schema; null where there is none. */
export async function selectTable(db: Queryable, table: string): Promise<string | null> {
  const { rows } = await db.query<{ name: string | null }>(
    `select (select pg_catalog.format('%I.%I', n.nspname, c.relname)
               from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
              where c.oid = pg_catalog.to_regclass($1::text)) as name`,
    [table],
  )
  return rows[0]!.name
}

/** As an operator would write it. */
export function captureStatement(schema: string, table: string, options: CaptureOptions): string {
  const { aggregate, omit = [], truncate, each, unchanged } = options
  const list = `{${omit.map((name) => `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`).join(',')}}`
  const parts = [
    quoteLiteral(table),
    ...(aggregate === undefined ? [] : [`aggregate => ${quoteLiteral(aggregate)}`]),
    ...(omit.length === 0 ? [] : [`omit => ${quoteLiteral(list)}`]),
    ...(truncate === undefined ? [] : [`truncate => ${quoteLiteral(truncate)}`]),
    ...(each === undefined ? [] : [`each => ${quoteLiteral(each)}`]),
    ...(unchanged === undefined ? [] : [`unchanged => ${unchanged}`]),
  ]
  return `select ${schema}.capture(${parts.join(', ')})`
}

/** Puts the triggers of a captured table in place again, with the options it has. */
export async function mendCaptured(db: Queryable, aggregate: string): Promise<void> {
  await db.query(
    `select ${db.schema}.apply_capture(c.relation, c.aggregate_type, c.omit, c.truncate, c.each, c.unchanged)
       from ${db.schema}.captured() c
      where c.aggregate_type = $1::text`,
    [aggregate],
  )
}

/** Whether it was captured. */
export async function uncapture(db: Queryable, { table, aggregate }: { table?: string; aggregate?: string }) {
  const { rows } = await db.query<{ ended: boolean }>(
    `select ${db.schema}.uncapture(pg_catalog.to_regclass($1::text), aggregate => $2::text) as ended`,
    [table ?? null, aggregate ?? null],
  )
  return rows[0]!.ended
}
