/**
 * Applies pending migrations, one transaction each, so that a migrator killed at any moment leaves either all of a file
 * or nothing of it. Racing migrators agree: whoever holds the lock reads again what is left to do.
 *
 * - the lock belongs to the transaction of each file; it cannot outlive its owner, and a backend that still works for a
 *   dead process keeps the successor waiting. It is tried and never waited for, because a waiting statement holds a
 *   snapshot, and a concurrent index build would wait for that snapshot in turn.
 * - a file that meets other people's locks gives up after `lockTimeoutMs`, lets the traffic behind it pass, and retries
 * - a `-- concurrent` file cannot be in a transaction; a second connection holds the lock while it runs
 */
import { AftercommitError } from '../errors.ts'
import { type Backoff, backoffDelay } from '../runtime/index.ts'
import type { Database } from './database.ts'
import { quoteIdentifier } from './identifiers.ts'
import {
  allowIdling,
  createMigrationsTable,
  createSchema,
  dropIndex,
  insertApplied,
  selectBookExists,
  selectIndexIsValid,
  setMigrationSettings,
} from './migration-statements.ts'
import { breaksOlder, fileNameOf, isConcurrent, loadMigrations, type Migration, renderMigration } from './migrations.ts'
import type { Queryable } from './queryable.ts'
import { assertNotTooNew, compareSchema, readApplied } from './schema-status.ts'
import { assertServerVersion } from './server.ts'
import type { Session } from './session.ts'
import { concurrentIndexName, splitStatements } from './sql-text.ts'
import { SQLSTATE, sqlstateOf } from './sqlstate.ts'
import { tryTransactionLock } from './statements.ts'
import type { Transaction } from './transaction.ts'

export interface MigrateOptions {
  /** Those of this build by default. */
  migrations?: readonly Migration[]
  /** Others may have to wait behind a migration for this long, and no longer. */
  lockTimeoutMs?: number
  /** How often one file is tried again when it met locks. */
  retries?: number
  /** Stops after this version. */
  targetVersion?: number
  onStep?: (step: MigrationStep) => void
  signal?: AbortSignal
}

export type MigrationStep =
  | { kind: 'applied'; migration: string }
  | { kind: 'blocked'; migration: string; attempt: number }
  /** Another migrator is at work. */
  | { kind: 'waiting' }

export interface MigrateResult {
  /** File names applied by this call; racing migrators share them. */
  applied: string[]
  version: number
}

export async function migrate(db: Database, options: MigrateOptions = {}): Promise<MigrateResult> {
  const { targetVersion = Number.POSITIVE_INFINITY } = options
  const migrations = options.migrations ?? (await loadMigrations())
  // Statements may take as long as they need: a query timeout would cut an index build that takes an hour.
  const session = await db.openSession('migrate', { queryTimeoutMs: 0 })
  try {
    await assertServerVersion(session)
    const run = new MigrationRun(db, session, migrations, options)
    for (;;) {
      const { status, next } = await run.look(session)
      if (next === undefined || next.version > targetVersion) return { applied: run.applied, version: status.current }
      await run.apply(next)
    }
  } finally {
    session.destroy()
  }
}

const LOCK_BACKOFF: Backoff = { strategy: 'exponential', initialMs: 50, maxMs: 1_000, jitter: 0.5 }
const RETRY_BACKOFF: Backoff = { strategy: 'exponential', initialMs: 200, maxMs: 5_000, jitter: 0.5 }

/** One call of `migrate`: what it works with, and what it has done. */
class MigrationRun {
  readonly applied: string[] = []
  readonly #db: Database
  readonly #session: Session
  readonly #migrations: readonly Migration[]
  readonly #options: Required<Pick<MigrateOptions, 'lockTimeoutMs' | 'retries'>> & MigrateOptions

  constructor(db: Database, session: Session, migrations: readonly Migration[], options: MigrateOptions) {
    this.#db = db
    this.#session = session
    this.#migrations = migrations
    this.#options = { lockTimeoutMs: 800, retries: 60, ...options }
  }

  async look(db: Queryable) {
    const applied = await readApplied(db, this.#db.schemaName.name)
    const status = compareSchema(this.#migrations, applied)
    assertNotTooNew(status, this.#db.schemaName.name)
    return { status, next: this.#migrations.find((migration) => fileNameOf(migration) === status.pending[0]) }
  }

  /** Returns when the file has been applied, by us or by somebody else. */
  async apply(migration: Migration): Promise<void> {
    const name = fileNameOf(migration)
    for (let attempt = 1, waits = 1; ; ) {
      try {
        const outcome = await (isConcurrent(migration) ? this.#applyOutside(migration) : this.#applyInside(migration))
        if (outcome !== 'locked') return
        this.#options.onStep?.({ kind: 'waiting' })
        await this.#sleep(backoffDelay(waits++, LOCK_BACKOFF))
      } catch (error) {
        if (!isBlocked(error)) throw migrationFailed(name, error)
        if (attempt > this.#options.retries) throw migrationBlocked(name, attempt, error)
        this.#options.onStep?.({ kind: 'blocked', migration: name, attempt })
        await this.#sleep(backoffDelay(attempt++, RETRY_BACKOFF))
      }
    }
  }

  #applyInside(migration: Migration): Promise<'applied' | 'locked' | 'done already'> {
    return this.#session.transaction(async (tx) => {
      if (!(await this.#lock(tx))) return 'locked'
      if (!(await this.#isNext(tx, migration))) return 'done already'
      await setMigrationSettings(tx, this.#options.lockTimeoutMs)
      await this.#prepareBook(tx)
      await tx.query(renderMigration(migration, this.#db.schemaName))
      await insertApplied(tx, migration, breaksOlder(migration))
      tx.onCommit(() => this.#tellApplied(migration))
      return 'applied'
    })
  }

  async #applyOutside(migration: Migration): Promise<'applied' | 'locked' | 'done already'> {
    const gate = await this.#db.openSession('migrate', { queryTimeoutMs: 0 })
    try {
      return await gate.transaction(async (tx) => {
        if (!(await this.#lock(tx))) return 'locked'
        if (!(await this.#isNext(tx, migration))) return 'done already'
        await allowIdling(tx)
        await this.#session.transaction((book) => this.#prepareBook(book))
        for (const statement of splitStatements(renderMigration(migration, this.#db.schemaName))) {
          await this.#runOutside(statement)
        }
        await insertApplied(this.#session, migration, breaksOlder(migration))
        this.#tellApplied(migration)
        return 'applied'
      })
    } finally {
      gate.destroy()
    }
  }

  /** A build that failed leaves an invalid index behind, which costs writes and serves no reads: it is built anew. */
  async #runOutside(statement: string): Promise<void> {
    const index = concurrentIndexName(statement)
    if (index !== undefined) {
      const valid = await selectIndexIsValid(this.#session, this.#db.schemaName.name, index)
      if (valid === true) return
      if (valid === false) await dropIndex(this.#session, quoteIdentifier(index))
    }
    await this.#session.query(statement)
  }

  async #prepareBook(tx: Transaction): Promise<void> {
    const exists = await selectBookExists(tx, this.#db.schemaName.name)
    if (!exists.schema) await createSchema(tx)
    if (!exists.table) await createMigrationsTable(tx)
  }

  #lock(tx: Transaction): Promise<boolean> {
    return tryTransactionLock(tx, this.#db.schemaName.lockKey('migrate'))
  }

  async #isNext(tx: Transaction, migration: Migration): Promise<boolean> {
    const { next } = await this.look(tx)
    return next?.version === migration.version
  }

  #tellApplied(migration: Migration): void {
    this.applied.push(fileNameOf(migration))
    this.#options.onStep?.({ kind: 'applied', migration: fileNameOf(migration) })
  }

  #sleep(ms: number): Promise<void> {
    return this.#db.clock.sleep(ms, this.#options.signal)
  }
}

function isBlocked(error: unknown): boolean {
  const state = sqlstateOf(error)
  return state === SQLSTATE.lockNotAvailable || state === SQLSTATE.deadlockDetected
}

function migrationBlocked(name: string, attempts: number, cause: unknown): AftercommitError {
  return new AftercommitError(
    'MIGRATION_BLOCKED',
    `Migration ${name} met the locks of other sessions in all ${attempts} attempts, so it was not applied; nothing ` +
      'changed. End the long transactions (pg_stat_activity shows them), then run it again.',
    { cause },
  )
}

function migrationFailed(name: string, cause: unknown): unknown {
  if (cause instanceof AftercommitError || sqlstateOf(cause) === undefined) return cause
  return new AftercommitError(
    'MIGRATION_FAILED',
    `Migration ${name} failed and was rolled back: ${(cause as Error).message}. Mend the cause and run it again.`,
    { cause },
  )
}
