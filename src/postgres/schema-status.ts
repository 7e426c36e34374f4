/**
 * Compares the migrations this build knows with those the database has. The comparison is pure; one statement feeds it.
 */
import { AftercommitError } from '../errors.ts'
import type { Database } from './database.ts'
import { type AppliedMigration, selectApplied, selectBookExists } from './migration-statements.ts'
import { fileNameOf, loadMigrations, type Migration } from './migrations.ts'
import type { Queryable } from './queryable.ts'

/**
 * - `empty`: nothing was ever applied · `behind`: migrations are pending
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
  /** File names still to be applied, in order. */
  pending: string[]
  /** Names of migrations that differ from what was applied. */
  changed: string[]
}

export async function schemaStatus(db: Database, migrations?: readonly Migration[]): Promise<SchemaStatus> {
  const known = migrations ?? (await loadMigrations())
  return compareSchema(known, await readApplied(db, db.schemaName.name))
}

/** For a process about to work: throws unless it may. */
export async function assertSchemaUsable(db: Database, migrations?: readonly Migration[]): Promise<void> {
  const status = await schemaStatus(db, migrations)
  assertNotTooNew(status, db.schemaName.name)
  if (status.state !== 'empty' && status.state !== 'behind') return
  throw new AftercommitError(
    'SCHEMA_TOO_OLD',
    `Schema "${db.schemaName.name}" is at version ${status.current} and this aftercommit needs version ` +
      `${status.latest}, so it was not started. Run \`aftercommit migrate\` first.`,
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

export function compareSchema(known: readonly Migration[], applied: readonly AppliedMigration[]): SchemaStatus {
  const latest = Math.max(0, ...known.map((migration) => migration.version))
  const current = Math.max(0, ...applied.map((migration) => migration.version))
  const byVersion = new Map(applied.map((migration) => [migration.version, migration]))
  const pending = known.filter((migration) => !byVersion.has(migration.version))
  const changed = known.filter((migration) => {
    const before = byVersion.get(migration.version)
    return before !== undefined && before.checksum !== migration.checksum
  })
  const newer = applied.filter((migration) => migration.version > latest)
  const state = stateOf({ applied, pending, changed, newer })
  return { state, current, latest, pending: pending.map(fileNameOf), changed: changed.map(fileNameOf) }
}

/** What must stop a process comes before what a migration could mend. */
function stateOf(found: {
  applied: readonly AppliedMigration[]
  pending: readonly Migration[]
  changed: readonly Migration[]
  newer: readonly AppliedMigration[]
}): SchemaState {
  if (found.newer.some((migration) => migration.breaksOlder)) return 'too-new'
  if (found.changed.length > 0) return 'changed'
  if (found.pending.length > 0) return found.applied.length === 0 ? 'empty' : 'behind'
  return found.newer.length > 0 ? 'ahead' : 'current'
}

export async function readApplied(db: Queryable, schema: string): Promise<AppliedMigration[]> {
  const book = await selectBookExists(db, schema)
  return book.table ? selectApplied(db) : []
}
