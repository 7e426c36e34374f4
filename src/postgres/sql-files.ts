/**
 * Functions, triggers and views as data. Each is one file of sql/, embedded at build time and put in place by `migrate`
 * when its hash differs from what the database has. The files of a build carry one version: a database that has a newer
 * one keeps it, so that an older process which migrates at its start puts no old body back.
 *
 * A changed signature or return type is a new name: older processes go on calling the old one, which a later migration
 * that says `-- older: refuse` drops.
 */
import { quoteIdentifier, quoteLiteral, type SchemaName } from './identifiers.ts'
import { renderSql } from './migrations.ts'
import type { Queryable } from './queryable.ts'

export interface SqlFile {
  /** `log/append`, as the file below sql/ is called. */
  readonly name: string
  readonly kind: 'function' | 'procedure' | 'trigger' | 'view' | 'data'
  /** The name of the object that it creates. Data creates none. */
  readonly object?: string
  /** The table of a trigger. */
  readonly table?: string
  /** The roles that may use it: emitting roles, running roles, roles that read, or the owner alone. */
  readonly grants: 'emit' | 'run' | 'read' | 'none'
  /** The text that `\df+` and the reference show. */
  readonly comment?: string
  readonly sql: string
  readonly hash: string
}

export interface SqlFiles {
  /** Rises with every release that changes a file. */
  readonly version: number
  /** In the order in which they are put in place. */
  readonly files: readonly SqlFile[]
}

export const NO_SQL_FILES: SqlFiles = { version: 0, files: [] }

/** The files of this build. Loaded on demand: most processes never migrate. */
export async function loadSqlFiles(): Promise<SqlFiles> {
  const { sqlFiles } = await import('./migrations.generated.ts')
  return sqlFiles
}

export interface PlacedFile {
  readonly name: string
  readonly hash: string
  readonly version: number
  /** Whether what it creates is there: an operator may have dropped it. */
  readonly exists: boolean
}

/** Files to put in place: none where the database has those of a newer build. */
export function pendingFiles(known: SqlFiles, placed: readonly PlacedFile[]): SqlFile[] {
  if (placed.some(({ version }) => version > known.version)) return []
  const byName = new Map(placed.map((file) => [file.name, file]))
  return known.files.filter(({ name, hash }) => {
    const there = byName.get(name)
    return there === undefined || there.hash !== hash || !there.exists
  })
}

export async function selectPlaced(db: Queryable, schema: string): Promise<PlacedFile[]> {
  const { rows } = await db.query<PlacedFile>(
    `select f.name, f.hash, f.version,
            case f.kind
              when 'procedure' then exists (
                select from pg_catalog.pg_proc p where p.pronamespace = n.oid and p.proname = f.object)
              when 'function' then exists (
                select from pg_catalog.pg_proc p where p.pronamespace = n.oid and p.proname = f.object)
              when 'view' then exists (
                select from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname = f.object)
              when 'trigger' then exists (
                select from pg_catalog.pg_trigger t
                  join pg_catalog.pg_class c on c.oid = t.tgrelid
                 where c.relnamespace = n.oid and c.relname = f.on_table and t.tgname = f.object)
              else true
            end as exists
       from ${db.schema}.sql_files f
       join pg_catalog.pg_namespace n on n.nspname = $1::text`,
    [schema],
  )
  return rows
}

/** How each trigger of the schema is enabled, by `table.trigger`: replacing a trigger would reset it. */
export async function selectTriggerStates(db: Queryable, schema: string): Promise<Map<string, string>> {
  const { rows } = await db.query<{ name: string; state: string }>(
    `select pg_catalog.format('%s.%s', c.relname, t.tgname) as name, t.tgenabled::text as state
       from pg_catalog.pg_trigger t
       join pg_catalog.pg_class c on c.oid = t.tgrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1::text
        and not t.tgisinternal`,
    [schema],
  )
  return new Map(rows.map(({ name, state }) => [name, state]))
}

const ENABLED: Record<string, string> = {
  O: 'enable trigger',
  D: 'disable trigger',
  R: 'enable replica trigger',
  A: 'enable always trigger',
}

/** The statements that put one file in place: its SQL, its comment, and no right for PUBLIC. */
export function fileStatements(
  file: SqlFile,
  schema: SchemaName,
  triggerStates: ReadonlyMap<string, string>,
): string[] {
  const statements = [renderSql(file.sql, schema)]
  const { kind, object, table, comment } = file
  const name = object === undefined ? '' : `${schema.quoted}.${quoteIdentifier(object)}`
  if (kind === 'function' || kind === 'procedure') statements.push(`revoke all on ${kind} ${name} from public`)
  if (comment !== undefined) {
    const target =
      kind === 'trigger' ? `${quoteIdentifier(object!)} on ${schema.quoted}.${quoteIdentifier(table!)}` : name
    statements.push(`comment on ${kind} ${target} is ${quoteLiteral(comment)}`)
  }
  const state = kind === 'trigger' ? triggerStates.get(`${table}.${object}`) : undefined
  if (state !== undefined) {
    const target = `${schema.quoted}.${quoteIdentifier(table!)}`
    statements.push(`alter table ${target} ${ENABLED[state]} ${quoteIdentifier(object!)}`)
  }
  return statements
}

/** Notes which files are in place. Files with an unchanged hash get the version of this build too. */
export function bookFiles({ version, files }: SqlFiles, schema: SchemaName): string {
  const rows = files.map(({ name, kind, object, table, hash }) => {
    const texts = [name, kind, object, table, hash].map((text) => (text === undefined ? 'null' : quoteLiteral(text)))
    return `(${texts.join(', ')}, ${version})`
  })
  return `insert into ${schema.quoted}.sql_files as f (name, kind, object, on_table, hash, version)
values ${rows.join(',\n       ')}
on conflict (name) do update
   set kind = excluded.kind, object = excluded.object, on_table = excluded.on_table, hash = excluded.hash,
       version = excluded.version,
       applied_at = case when f.hash = excluded.hash then f.applied_at else pg_catalog.clock_timestamp() end`
}
