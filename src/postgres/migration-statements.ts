/** The statements by which migrations keep book. */
import type { Migration } from './migrations.ts'
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

/** Not "if not exists": with it, a role that may use the schema but not create one would be refused. */
export async function createSchema(db: Queryable): Promise<void> {
  await db.query(`create schema ${db.schema}`)
}

export async function createMigrationsTable(db: Queryable): Promise<void> {
  await db.query(
    `create table ${db.schema}.migrations (
       version      integer primary key,
       name         text not null,
       checksum     text not null,
       applied_at   timestamptz not null default pg_catalog.clock_timestamp(),
       applied_by   text not null,
       breaks_older boolean not null
     )`,
  )
}

export async function selectApplied(db: Queryable): Promise<AppliedMigration[]> {
  const { rows } = await db.query<AppliedMigration>(
    `select version, name, checksum, breaks_older as "breaksOlder"
       from ${db.schema}.migrations
      order by version`,
  )
  return rows
}

export async function insertApplied(db: Queryable, migration: Migration, breaksOlder: boolean): Promise<void> {
  await db.query(
    `insert into ${db.schema}.migrations (version, name, checksum, applied_by, breaks_older)
     values (($1::text)::integer, $2::text, $3::text,
             pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')),
             ($4::text)::boolean)`,
    [migration.version, migration.name, migration.checksum, breaksOlder],
  )
}

/** For one migration: short waits for locks, and names that mean ours whatever the role's search_path says. */
export async function setMigrationSettings(db: Queryable, lockTimeoutMs: number): Promise<void> {
  await db.query(
    `select pg_catalog.set_config('lock_timeout', $1::text, true),
            pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`,
    [String(Math.ceil(lockTimeoutMs))],
  )
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
