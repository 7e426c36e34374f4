/**
 * Brings captured tables to what is declared, and mends triggers that were lost: an ORM that makes a table anew drops them
 * without a word. Tables that were captured by SQL alone stay as they are. Each table is a transaction of its own, which gives
 * up soon where other sessions hold locks, and is tried again.
 */
import { type Database, type Queryable, SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { type Backoff, backoffDelay } from '../runtime/index.ts'
import { type DeclaredTables, defaultAggregate } from './declared.ts'
import { refusal } from './refusal.ts'
import { type CapturedTable, captureStatement, mendCaptured, selectCaptured, selectTable } from './statements.ts'

/** What is left to do for one table. */
export interface PendingCapture {
  readonly table: string
  readonly reason: 'new' | 'changed' | 'lost triggers' | 'no such table'
  /** What the owner of the table would run; null where there is no table. */
  readonly sql: string | null
}

export interface CaptureStep extends PendingCapture {
  readonly outcome: 'done' | 'left'
  /** Why it was left; null when it was done. */
  readonly problem: string | null
}

interface Work extends PendingCapture {
  run(tx: Queryable): Promise<unknown>
}

/** What is declared and not so in the database, then what lost its triggers. */
export async function pendingCaptures(db: Queryable, declared: DeclaredTables): Promise<Work[]> {
  const captured = await selectCaptured(db)
  const pending: Work[] = []
  const judged = new Set<string>()
  for (const [name, { row: _, ...options }] of Object.entries(declared)) {
    const table = await selectTable(db, name)
    const there = captured.find((one) => one.exists && one.table === table)
    if (there) judged.add(there.aggregate)
    if (table === null) {
      pending.push({ table: name, reason: 'no such table', sql: null, run: async () => undefined })
    } else if (
      there === undefined ||
      !isAsDeclared(there, { ...options, aggregate: options.aggregate ?? defaultAggregate(name) })
    ) {
      const sql = captureStatement(db.schema, table, options)
      pending.push({ table, reason: there === undefined ? 'new' : 'changed', sql, run: (tx) => tx.query(sql) })
    } else if (there.missing.length > 0) {
      pending.push(mending(db, there))
    }
  }
  const lost = captured.filter(
    ({ exists, missing, aggregate }) => exists && missing.length > 0 && !judged.has(aggregate),
  )
  return [...pending, ...lost.map((one) => mending(db, one))]
}

export async function reconcile(
  database: Database,
  pending: readonly Work[],
  onStep: (step: CaptureStep) => void = () => {},
): Promise<CaptureStep[]> {
  const steps: CaptureStep[] = []
  for (const { run, ...work } of pending) {
    const problem = work.sql === null ? 'there is no such table yet' : await attempt(database, run)
    const step = { ...work, outcome: problem === null ? ('done' as const) : ('left' as const), problem }
    onStep(step)
    steps.push(step)
  }
  return steps
}

function isAsDeclared(
  there: CapturedTable,
  { aggregate, omit = [], truncate, each, unchanged }: DeclaredTables[string],
): boolean {
  return (
    there.aggregate === aggregate &&
    // A column that was renamed or dropped since stays in the list of what is left out.
    omit.every((name) => there.omit.includes(name)) &&
    there.truncate === (truncate ?? 'event') &&
    (each === undefined || there.each === each) &&
    there.unchanged === (unchanged ?? false)
  )
}

function mending(db: Queryable, { table, aggregate, omit, truncate, each, unchanged }: CapturedTable): Work {
  return {
    table,
    reason: 'lost triggers',
    sql: captureStatement(db.schema, table, { aggregate, omit, truncate, each, unchanged }),
    run: (tx) => mendCaptured(tx, aggregate),
  }
}

const LOCK_TIMEOUT_MS = 800
const ATTEMPTS = 20
const BACKOFF: Backoff = { strategy: 'exponential', initialMs: 100, maxMs: 2_000, jitter: 0.5 }

/** Null when it was done; what keeps it from being done, where the owner of the table or an operator can change that. */
async function attempt(database: Database, run: Work['run']): Promise<string | null> {
  for (let failures = 1; ; failures++) {
    try {
      await database.transaction((tx) => run(tx), { lockTimeoutMs: LOCK_TIMEOUT_MS })
      return null
    } catch (error) {
      const state = sqlstateOf(error)
      const message = error instanceof Error ? error.message : String(error)
      if (state === 'AC017') throw refusal(error)
      if (state === SQLSTATE.insufficientPrivilege) return message
      if (state !== SQLSTATE.lockNotAvailable && state !== SQLSTATE.deadlockDetected) throw error
      if (failures === ATTEMPTS) return `other sessions held locks on it in all ${ATTEMPTS} attempts`
      await database.clock.sleep(backoffDelay(failures, BACKOFF))
    }
  }
}
