/** The statements by which migrations keep book. Statements that write are texts, so that they can be printed as well. */
import { quoteLiteral, type SchemaName } from './identifiers.ts'
import { breaksOlder, type Migration } from './migrations.ts'
import type { Queryable } from './queryable.ts'

export interface AppliedMigration {
  version: number
  name: string
  checksum: string
  breaksOlder: boolean
}

/** Looks into the catalog instead of trying: a failed statement would spoil the surrounding transaction. */
export async function selectBookExists(db: Queryable, schema: string): Promise<{ schema: boolean; table: boolean }> {
  const { rows } = await db.query<{ schema: boolean; table: boolean }>(
    `select exists (select from pg_catalog.pg_namespace where nspname = $1::text) as "schema",
            exists (select
                      from pg_catalog.pg_class
                      join pg_catalog.pg_namespace on pg_namespace.oid = pg_class.relnamespace
                     where nspname = $1::text
                       and relname = 'migrations') as "table"`,
    [schema],
  )
  return rows[0]!
}

/**
 * The schema, where it is missing, and the tables that migrations keep book in. Not "if not exists": with it, a role that
 * may use the schema but not create one would be refused.
 */
export function createBook({ quoted }: SchemaName, exists: { schema: boolean; table: boolean }): string[] {
  const tables = [
    `create table ${quoted}.migrations (
  version      integer primary key,
  name         text not null,
  checksum     text not null,
  applied_at   timestamptz not null default pg_catalog.clock_timestamp(),
  applied_by   text not null,
  breaks_older boolean not null
)`,
    `comment on table ${quoted}.migrations is 'Numbered migrations that were applied, with the checksum of each file.'`,
    `create table ${quoted}.sql_files (
  name       text primary key,
  kind       text not null,
  object     text,
  on_table   text,
  hash       text not null,
  version    integer not null,
  applied_at timestamptz not null default pg_catalog.clock_timestamp()
)`,
    `comment on table ${quoted}.sql_files is 'Functions, triggers and views in place, with the version of the build that brought them.'`,
    `create table ${quoted}.granted_roles (
  role    text not null,
  "right" text not null,
  version integer not null,
  primary key (role, "right")
)`,
    `comment on table ${quoted}.granted_roles is 'Roles that were given rights: migrate gives these again on what it adds.'`,
  ]
  const schema = [
    `create schema ${quoted}`,
    `comment on schema ${quoted} is 'The event log of aftercommit, with its subscriptions, deliveries, observers and workflows.'`,
  ]
  return [...(exists.schema ? [] : schema), ...(exists.table ? [] : tables)]
}

export async function selectApplied(db: Queryable): Promise<AppliedMigration[]> {
  const { rows } = await db.query<AppliedMigration>(
    `select version, name, checksum, breaks_older as "breaksOlder"
       from ${db.schema}.migrations
      order by version`,
  )
  return rows
}

export function bookMigration(migration: Migration, { quoted }: SchemaName): string {
  const { version, name, checksum } = migration
  return `insert into ${quoted}.migrations (version, name, checksum, applied_by, breaks_older)
values (${version}, ${quoteLiteral(name)}, ${quoteLiteral(checksum)},
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), ${breaksOlder(migration)})`
}

/** For one transaction: short waits for locks, and names that mean ours whatever the role's search_path says. */
export function migrationSettings(lockTimeoutMs: number): string[] {
  return [`set local lock_timeout = ${Math.ceil(lockTimeoutMs)}`, 'set local search_path = pg_catalog, pg_temp']
}

/** The transaction that holds the lock for a concurrent build idles for as long as the build takes. */
export async function allowIdling(db: Queryable): Promise<void> {
  await db.query(`select pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true)`)
}

/** Null when there is no such index, false when a build of it failed half way. */
export async function selectIndexIsValid(db: Queryable, schema: string, index: string): Promise<boolean | null> {
  const { rows } = await db.query<{ valid: boolean }>(
    `select indisvalid as valid
       from pg_catalog.pg_index
       join pg_catalog.pg_class on pg_class.oid = pg_index.indexrelid
       join pg_catalog.pg_namespace on pg_namespace.oid = pg_class.relnamespace
      where nspname = $1::text
        and relname = $2::text`,
    [schema, index],
  )
  return rows[0]?.valid ?? null
}

export async function dropIndex(db: Queryable, quotedIndex: string): Promise<void> {
  await db.query(`drop index concurrently if exists ${db.schema}.${quotedIndex}`)
}
