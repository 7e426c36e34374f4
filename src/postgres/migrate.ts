/**
 * Brings a schema up to date: pending migrations, one transaction each, then in one transaction the functions, triggers
 * and views that differ, the data that calls them, and the rights of every role that was granted some. A migrator killed
 * at any moment leaves either all of a step or nothing of it. Racing migrators agree: the holder of the lock reads again
 * what is left to do.
 *
 * - the lock belongs to the transaction of each step; it cannot outlive its owner, and a backend that still works for a
 *   dead process keeps the successor waiting. It is tried and never waited for, because a waiting statement holds a
 *   snapshot, and a concurrent index build would wait for that snapshot in turn.
 * - a step that meets locks of other sessions gives up after `lockTimeoutMs`, lets the traffic behind it pass, and retries
 * - a `-- concurrent` file cannot be in a transaction; a second connection holds the lock while it runs
 */
import { AftercommitError } from '../errors.ts'
import { type Backoff, backoffDelay } from '../runtime/index.ts'
import type { Database } from './database.ts'
import { quoteIdentifier } from './identifiers.ts'
import { LOCK_TIMEOUT_MS, placeSteps } from './migration-script.ts'
import {
  allowIdling,
  bookMigration,
  createBook,
  dropIndex,
  migrationSettings,
  selectBookExists,
  selectIndexIsValid,
} from './migration-statements.ts'
import { fileNameOf, isConcurrent, type Migration, renderMigration } from './migrations.ts'
import type { Queryable } from './queryable.ts'
import { selectGrantedRoles } from './roles.ts'
import { assertNotTooNew, readStatus, type SchemaDefinition, schemaDefinition } from './schema-status.ts'
import { assertServerVersion } from './server.ts'
import type { Session } from './session.ts'
import { selectTriggerStates } from './sql-files.ts'
import { concurrentIndexName, splitStatements } from './sql-text.ts'
import { SQLSTATE, sqlstateOf } from './sqlstate.ts'
import { tryTransactionLock } from './statements.ts'
import type { Transaction } from './transaction.ts'

export interface MigrateOptions extends Partial<SchemaDefinition> {
  /** How long other sessions may have to wait behind one step. Default: 800. */
  lockTimeoutMs?: number
  /** How often one step is tried again when it met locks. Default: 60. */
  retries?: number
  /** Stops after this version. */
  targetVersion?: number
  onStep?: (step: MigrationStep) => void
  signal?: AbortSignal
}

export type MigrationStep =
  | { kind: 'applied'; migration: string }
  /** Functions, triggers and views were put in place. */
  | { kind: 'placed'; files: readonly string[] }
  | { kind: 'blocked'; migration: string; attempt: number }
  /** Another migrator is at work. */
  | { kind: 'waiting' }

export interface MigrateResult {
  /** Names of the migrations applied by this call; racing migrators share them. */
  applied: string[]
  /** Names of the functions, triggers and views put in place by this call. */
  placed: string[]
  version: number
}

export async function migrate(db: Database, options: MigrateOptions = {}): Promise<MigrateResult> {
  const { targetVersion = Number.POSITIVE_INFINITY } = options
  const definition = await schemaDefinition(options)
  // Statements may take as long as they need: a query timeout would cut an index build that takes an hour.
  const session = await db.openSession('migrate', { queryTimeoutMs: 0 })
  try {
    await assertServerVersion(session)
    const run = new MigrationRun(db, session, definition, options)
    for (;;) {
      const { status, next, isPlaced } = await run.look(session)
      const { applied, placed } = run
      if (next === undefined ? isPlaced : next.version > targetVersion) {
        return { applied, placed, version: status.current }
      }
      if (next) await run.apply(next)
      else await run.place()
    }
  } finally {
    session.destroy()
  }
}

const LOCK_BACKOFF: Backoff = { strategy: 'exponential', initialMs: 50, maxMs: 1_000, jitter: 0.5 }
const RETRY_BACKOFF: Backoff = { strategy: 'exponential', initialMs: 200, maxMs: 5_000, jitter: 0.5 }

type StepOutcome = 'done' | 'locked' | 'done already'

/** One call of `migrate`: what it works with, and what it has done. */
class MigrationRun {
  readonly applied: string[] = []
  readonly placed: string[] = []
  readonly #db: Database
  readonly #session: Session
  readonly #definition: SchemaDefinition
  readonly #options: Required<Pick<MigrateOptions, 'lockTimeoutMs' | 'retries'>> & MigrateOptions

  constructor(db: Database, session: Session, definition: SchemaDefinition, options: MigrateOptions) {
    this.#db = db
    this.#session = session
    this.#definition = definition
    this.#options = { lockTimeoutMs: LOCK_TIMEOUT_MS, retries: 60, ...options }
  }

  async look(db: Queryable) {
    const { migrations, sql } = this.#definition
    const status = await readStatus(db, this.#definition, this.#db.schemaName.name)
    assertNotTooNew(status, this.#db.schemaName.name)
    const files = sql.files.filter(({ name }) => status.pendingFiles.includes(name))
    const granted = status.state === 'empty' ? [] : await selectGrantedRoles(db)
    return {
      status,
      next: migrations.find((migration) => fileNameOf(migration) === status.pending[0]),
      files,
      isPlaced:
        files.length === 0 && granted.every(({ version }) => version >= Math.min(status.current, status.latest)),
    }
  }

  /** Returns when the migration has been applied, by this process or by another. */
  apply(migration: Migration): Promise<void> {
    return this.#untilDone(fileNameOf(migration), () =>
      isConcurrent(migration) ? this.#applyOutside(migration) : this.#applyInside(migration),
    )
  }

  /** Returns when the functions, triggers and views are in place. */
  place(): Promise<void> {
    return this.#untilDone('of functions, triggers and views', () => this.#placeFiles())
  }

  async #untilDone(name: string, step: () => Promise<StepOutcome>): Promise<void> {
    for (let attempt = 1, waits = 1; ; ) {
      try {
        if ((await step()) !== 'locked') return
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

  #applyInside(migration: Migration): Promise<StepOutcome> {
    return this.#session.transaction(async (tx) => {
      if (!(await this.#lock(tx))) return 'locked'
      if (!(await this.#isNext(tx, migration))) return 'done already'
      await this.#prepare(tx)
      await tx.query(renderMigration(migration, this.#db.schemaName))
      await tx.query(bookMigration(migration, this.#db.schemaName))
      tx.onCommit(() => this.#tellApplied(migration))
      return 'done'
    })
  }

  async #applyOutside(migration: Migration): Promise<StepOutcome> {
    const gate = await this.#db.openSession('migrate', { queryTimeoutMs: 0 })
    try {
      return await gate.transaction(async (tx) => {
        if (!(await this.#lock(tx))) return 'locked'
        if (!(await this.#isNext(tx, migration))) return 'done already'
        await allowIdling(tx)
        await this.#session.transaction((book) => this.#prepare(book))
        for (const statement of splitStatements(renderMigration(migration, this.#db.schemaName))) {
          await this.#runOutside(statement)
        }
        await this.#session.query(bookMigration(migration, this.#db.schemaName))
        this.#tellApplied(migration)
        return 'done'
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

  #placeFiles(): Promise<StepOutcome> {
    return this.#session.transaction(async (tx) => {
      if (!(await this.#lock(tx))) return 'locked'
      const { next, files, isPlaced } = await this.look(tx)
      if (next !== undefined || isPlaced) return 'done already'
      await this.#prepare(tx)
      const there = {
        triggerStates: await selectTriggerStates(tx, this.#db.schemaName.name),
        granted: await selectGrantedRoles(tx),
      }
      for (const { name, statements } of placeSteps(this.#definition, this.#db.schemaName, files, there)) {
        for (const statement of statements) {
          await tx.query(statement).catch((error) => {
            throw isBlocked(error) ? error : migrationFailed(name, error)
          })
        }
      }
      const names = files.map(({ name }) => name)
      tx.onCommit(() => {
        if (names.length === 0) return
        this.placed.push(...names)
        this.#options.onStep?.({ kind: 'placed', files: names })
      })
      return 'done'
    })
  }

  async #prepare(tx: Transaction): Promise<void> {
    const exists = await selectBookExists(tx, this.#db.schemaName.name)
    const statements = [...migrationSettings(this.#options.lockTimeoutMs), ...createBook(this.#db.schemaName, exists)]
    for (const statement of statements) await tx.query(statement)
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
