/** `ac.capture`, and what starting, migrating, upkeep and doctor do with captured tables. */
import { type Database, type Finding, ok, type Queryable } from '../postgres/index.ts'
import { type BackfillOptions, type BackfillReport, backfill } from './backfill.ts'
import type { CaptureOptions, DeclaredTables } from './declared.ts'
import { type ImportOptions, type ImportReport, importEvents } from './import.ts'
import { type CaptureStep, type PendingCapture, pendingCaptures, reconcile } from './reconcile.ts'
import { refusal } from './refusal.ts'
import { type CapturedTable, captureStatement, selectCaptured, uncapture } from './statements.ts'

/** Tables whose row changes become events, whoever makes them. */
export interface Capture {
  /** Captured tables, with the triggers that each has lost. */
  list(): Promise<CapturedTable[]>
  /** Captures a table from now on, or changes how it is captured. Needs the right to make triggers on it. */
  add(table: string, options?: CaptureOptions): Promise<CapturedTable>
  /** Ends the capture of a table; of one that is gone by its aggregate type. False where it was not captured. */
  remove(table: string | { readonly aggregate: string }): Promise<boolean>
  /** Makes `order.existing` of the rows that a captured table has already; goes on where an earlier call ended. */
  backfill(table: string, options?: BackfillOptions): Promise<BackfillReport>
  /** Appends the rows of a table of events that existed before, in their order; goes on where an earlier call ended. */
  importEvents(table: string, options: ImportOptions): Promise<ImportReport>
  /** What `migrate` would do: declared tables that are not captured as declared, and lost triggers. */
  pending(): Promise<PendingCapture[]>
}

export interface CaptureStage {
  readonly capture: Capture
  /** Whether tables are known to be captured: only then a transaction tells the database its trace. */
  readonly isUsed: () => boolean
  /** Looks which tables are captured; an older schema has none. */
  learn(): Promise<void>
  reconcile(onStep?: (step: CaptureStep) => void): Promise<CaptureStep[]>
  /** Triggers that were lost come back; a table of another owner is left, and named by doctor. */
  mend(): Promise<void>
  diagnose(): Promise<Finding[]>
}

export function createCapture(database: Database, declared: DeclaredTables): CaptureStage {
  let isUsed = Object.keys(declared).length > 0
  const list = async () => {
    const tables = await selectCaptured(database.control)
    isUsed ||= tables.length > 0
    return tables
  }
  return {
    isUsed: () => isUsed,
    async learn() {
      await list()
    },
    async reconcile(onStep) {
      return reconcile(database, await pendingCaptures(database, declared), onStep)
    },
    async mend() {
      const pending = await pendingCaptures(database.control, {})
      for (const { table, problem } of await reconcile(database, pending)) {
        if (problem === null)
          database.logger.warn({ table }, 'triggers of a captured table were lost, and are in place again')
      }
    },
    diagnose: async () => findings(await selectCaptured(database), await pendingCaptures(database, declared)),
    capture: {
      list,
      add: async (table, options = {}) => {
        try {
          await database.query(captureStatement(database.schema, table, options))
        } catch (error) {
          throw refusal(error)
        }
        isUsed = true
        return (await captured(database, table))!
      },
      remove: (table) =>
        typeof table === 'string'
          ? uncapture(database, { table })
          : uncapture(database, { aggregate: table.aggregate }),
      backfill: (table, options) => backfill(database, table, options),
      importEvents: (table, options) => importEvents(database, table, options),
      pending: async () =>
        (await pendingCaptures(database, declared)).map(({ table, reason, sql }) => ({ table, reason, sql })),
    },
  }
}

async function captured(db: Queryable, table: string): Promise<CapturedTable | undefined> {
  const { rows } = await db.query<{ aggregate: string }>(
    `select aggregate_type as aggregate from ${db.schema}.captured() where relation = pg_catalog.to_regclass($1::text)`,
    [table],
  )
  return (await selectCaptured(db)).find(({ aggregate }) => aggregate === rows[0]?.aggregate)
}

function findings(tables: readonly CapturedTable[], pending: readonly PendingCapture[]): Finding[] {
  const check = 'capture'
  const gone = tables.filter(({ exists }) => !exists)
  if (tables.length === 0 && pending.length === 0) return []
  return [
    ...(pending.length === 0 && gone.length === 0
      ? [ok(check, `${tables.length} captured tables; writes of replicas and restores of data alone are not captured`)]
      : []),
    ...pending.map(({ table, reason, sql }): Finding => {
      const message = {
        new: `Table ${table} is declared and not captured: its changes are no events.`,
        changed: `Table ${table} is captured in another way than declared.`,
        'lost triggers': `Table ${table} lost triggers: some of its changes are no events.`,
        'no such table': `Table ${table} is declared to be captured, and there is no such table.`,
      }[reason]
      return {
        level: 'problem',
        check,
        message,
        fix:
          sql === null
            ? 'Make the table, then: aftercommit migrate'
            : `aftercommit migrate, or as owner of the table: ${sql}`,
      }
    }),
    ...gone.map(
      ({ table, aggregate }): Finding => ({
        level: 'note',
        check,
        message: `Table ${table} was captured, and is gone.`,
        fix: `select aftercommit.uncapture(null, aggregate => '${aggregate}')`,
      }),
    ),
  ]
}
