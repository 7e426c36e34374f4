/**
 * Compares the migrations this build knows with those the database has. The comparison is pure; one statement feeds it.
 */
import { AftercommitError } from '../errors.ts'
import type { Database } from './database.ts'
import { type AppliedMigration, selectApplied, selectBookExists } from './migration-statements.ts'
import { fileNameOf, loadMigrations, type Migration } from './migrations.ts'
import type { Queryable } from './queryable.ts'
import { loadSqlFiles, NO_SQL_FILES, type PlacedFile, pendingFiles, type SqlFiles, selectPlaced } from './sql-files.ts'

/** The schema of a build: tables by numbered migrations; functions, triggers and views by files. */
export interface SchemaDefinition {
  readonly migrations: readonly Migration[]
  readonly sql: SqlFiles
}

/** The schema of this build. A test that names migrations of its own has no functions unless it names them too. */
export async function schemaDefinition(given: Partial<SchemaDefinition> = {}): Promise<SchemaDefinition> {
  if (given.migrations) return { migrations: given.migrations, sql: given.sql ?? NO_SQL_FILES }
  return { migrations: await loadMigrations(), sql: await loadSqlFiles() }
}

/**
 * - `empty`: nothing was ever applied · `behind`: migrations or files are pending
 * - `current`: the same on both sides · `ahead`: the database has newer ones that this build can live with
 * - `too-new`: it has newer ones that this build must not work with
 * - `changed`: a migration was edited after it was applied
 */
export type SchemaState = 'empty' | 'behind' | 'current' | 'ahead' | 'too-new' | 'changed'

export interface SchemaStatus {
  state: SchemaState
  /** Highest version in the database; 0 when there is none. */
  current: number
  /** Highest version this build knows. */
  latest: number
  /** Names of migrations still to be applied, in order. */
  pending: string[]
  /** Names of functions, triggers and views to put in place, in order. */
  pendingFiles: string[]
  /** Names of migrations that differ from what was applied. */
  changed: string[]
}

export async function schemaStatus(db: Database, given: Partial<SchemaDefinition> = {}): Promise<SchemaStatus> {
  return readStatus(db, await schemaDefinition(given), db.schemaName.name)
}

/** For a process about to work: throws unless it may. */
export async function assertSchemaUsable(db: Database, given: Partial<SchemaDefinition> = {}): Promise<void> {
  const status = await schemaStatus(db, given)
  assertNotTooNew(status, db.schemaName.name)
  if (status.state !== 'empty' && status.state !== 'behind') return
  throw new AftercommitError(
    'SCHEMA_TOO_OLD',
    `Schema "${db.schemaName.name}" is at version ${status.current} and this aftercommit needs version ` +
      `${status.latest}${status.pending.length === 0 ? ' with its functions' : ''}, so it was not started. ` +
      'Run `aftercommit migrate` first.',
  )
}

/** For a migrator as well as for a worker: neither may go on. */
export function assertNotTooNew(status: SchemaStatus, schema: string): void {
  if (status.state === 'too-new') {
    throw new AftercommitError(
      'SCHEMA_TOO_NEW',
      `Schema "${schema}" is at version ${status.current}, which processes that know only version ${status.latest} ` +
        'must not write to, so this one refused. Deploy the newer aftercommit here too.',
    )
  }
  if (status.state === 'changed') {
    throw new AftercommitError(
      'MIGRATION_CHANGED',
      `Applied to schema "${schema}" with another content than in this build: ${status.changed.join(', ')}. ` +
        'Nothing was done. Applied migrations never change: restore the file, and put the change into a new one.',
    )
  }
}

export async function readStatus(db: Queryable, known: SchemaDefinition, schema: string): Promise<SchemaStatus> {
  const book = await selectBookExists(db, schema)
  if (!book.table) return compareSchema(known.migrations, [], pendingFiles(known.sql, []))
  return compareSchema(
    known.migrations,
    await selectApplied(db),
    pendingFiles(known.sql, await selectPlaced(db, schema)),
  )
}

/** Highest version of these migrations. */
export function latestOf(migrations: readonly Migration[]): number {
  return Math.max(0, ...migrations.map(({ version }) => version))
}

export function compareSchema(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
  files: readonly Pick<PlacedFile, 'name'>[] = [],
): SchemaStatus {
  const latest = latestOf(known)
  const current = Math.max(0, ...applied.map((migration) => migration.version))
  const byVersion = new Map(applied.map((migration) => [migration.version, migration]))
  const pending = known.filter((migration) => !byVersion.has(migration.version))
  const changed = known.filter((migration) => {
    const before = byVersion.get(migration.version)
    return before !== undefined && before.checksum !== migration.checksum
  })
  const newer = applied.filter((migration) => migration.version > latest)
  const state = stateOf({ applied, pending: [...pending, ...files], changed, newer })
  return {
    state,
    current,
    latest,
    pending: pending.map(fileNameOf),
    pendingFiles: files.map(({ name }) => name),
    changed: changed.map(fileNameOf),
  }
}

/** What must stop a process comes before what a migration could mend. */
function stateOf(found: {
  applied: readonly AppliedMigration[]
  pending: readonly unknown[]
  changed: readonly Migration[]
  newer: readonly AppliedMigration[]
}): SchemaState {
  if (found.newer.some((migration) => migration.breaksOlder)) return 'too-new'
  if (found.changed.length > 0) return 'changed'
  if (found.pending.length > 0) return found.applied.length === 0 ? 'empty' : 'behind'
  return found.newer.length > 0 ? 'ahead' : 'current'
}
