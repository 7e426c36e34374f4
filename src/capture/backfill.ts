/** Events for the rows that a captured table has already, batch by batch, each in a transaction of its own. */
import type { Database } from '../postgres/index.ts'
import { SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { type Backoff, backoffDelay } from '../runtime/index.ts'
import { refusal } from './refusal.ts'

export interface BackfillOptions {
  /** From the first row on, although it was finished before. Default: false. */
  readonly again?: boolean | undefined
  /** Rows in one transaction. Default: 1000. */
  readonly batch?: number | undefined
  readonly onProgress?: ((done: number) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface BackfillReport {
  /** Rows that became events in this call; an earlier one that ended early is not counted. */
  readonly rows: number
}

/** Goes on where an earlier call ended, and does nothing where one has finished. */
export async function backfill(
  database: Database,
  table: string,
  { again = false, batch = 1_000, onProgress, signal }: BackfillOptions = {},
): Promise<BackfillReport> {
  const { schema } = database
  const call = async <Row>(text: string, values: readonly (string | number | boolean)[]) => {
    try {
      return (await database.query<Row>(text, values)).rows[0]!
    } catch (error) {
      throw refusal(error)
    }
  }
  let rows = 0
  const { left } = await call<{ left: boolean }>(
    `select ${schema}.begin_backfill(($1::text)::regclass, $2::boolean) as left`,
    [table, again],
  )
  for (let failures = 0; left; ) {
    signal?.throwIfAborted()
    await database.query(`select ${schema}.make_room()`)
    try {
      const { done } = await call<{ done: number }>(
        `select ${schema}.backfill_batch(($1::text)::regclass, ($2::text)::integer) as done`,
        [table, String(batch)],
      )
      if (done === 0) break
      rows += done
      failures = 0
      onProgress?.(rows)
    } catch (error) {
      if (sqlstateOf(error) !== SQLSTATE.deadlockDetected || ++failures === ATTEMPTS) throw error
      await database.clock.sleep(backoffDelay(failures, BACKOFF), signal)
    }
  }
  return { rows }
}

const ATTEMPTS = 10
const BACKOFF: Backoff = { strategy: 'exponential', initialMs: 50, maxMs: 2_000, jitter: 0.5 }
