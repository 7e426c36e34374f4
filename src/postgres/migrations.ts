/**
 * Migrations as data. Each is a numbered SQL file, embedded at build time; the text is what was reviewed, and its
 * checksum proves later that nobody edited it after it was applied somewhere.
 *
 * In the text `:schema` stands for the quoted schema, `:schema_literal` for its name as a string, `:channel` and
 * `:channel_literal` for the bell's channel likewise, `:positions_literal` and
 * `:delivery_ids_literal` for the names of sequences. Header comments carry the decisions: `-- older: refuse` stops
 * processes that do not know the migration, a first line `-- concurrent` runs its statements outside a transaction.
 */
import { createHash } from 'node:crypto'
import { quoteIdentifier, quoteLiteral, type SchemaName } from './identifiers.ts'

export interface Migration {
  version: number
  name: string
  sql: string
  /** sha256 of `sql`, in hex. */
  checksum: string
}

/** Those this build knows, in order. Loaded on demand: most processes never migrate. */
export async function loadMigrations(): Promise<readonly Migration[]> {
  const { migrations } = await import('./migrations.generated.ts')
  return migrations
}

export function checksumOf(sql: string): string {
  return createHash('sha256').update(sql).digest('hex')
}

/** `0004_delivery_attempts`, as the file is called. */
export function fileNameOf({ version, name }: Pick<Migration, 'version' | 'name'>): string {
  return `${String(version).padStart(4, '0')}_${name}`
}

export function breaksOlder({ sql }: Migration): boolean {
  return /^-- older: refuse\b/m.test(sql)
}

export function isConcurrent({ sql }: Migration): boolean {
  return /^-- concurrent\b/.test(sql)
}

export function renderMigration({ sql }: Migration, schema: SchemaName): string {
  return renderSql(sql, schema)
}

export function renderSql(sql: string, schema: SchemaName): string {
  const values: Record<string, string> = {
    schema: schema.quoted,
    schema_literal: quoteLiteral(schema.name),
    channel: quoteIdentifier(schema.channel),
    channel_literal: quoteLiteral(schema.channel),
    positions_literal: quoteLiteral(`${schema.quoted}.positions`),
    delivery_ids_literal: quoteLiteral(`${schema.quoted}.delivery_ids`),
  }
  // Not after a colon or a letter: `x::schema` is a cast. The function form keeps `$` in names literal.
  return sql.replace(
    /(?<![:\w]):(schema|channel|schema_literal|channel_literal|positions_literal|delivery_ids_literal)\b/g,
    (_, token: string) => values[token]!,
  )
}
