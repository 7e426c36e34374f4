/** Keeps the table of deliveries small without a vacuum: segments that have run empty are truncated, one after the other. */
import type { Database } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'

export interface Rotation {
  /** Rows went: a segment may be empty. */
  settled(): void
  /** Rotates if there is reason to, and not too often. */
  turn(): Promise<void> | undefined
}

const LEAST_MS = 1_000
/** A segment that has seen so many rows is left to run empty. */
const SEGMENT_ROWS = 1_000

export function createRotation(database: Pick<Database, 'transaction'>, clock: Clock): Rotation {
  let hasSettled = false
  let dueAt = 0
  return {
    settled() {
      hasSettled = true
    },
    turn() {
      const now = clock.monotonic()
      if (!hasSettled || now < dueAt) return undefined
      hasSettled = false
      dueAt = now + LEAST_MS
      return rotateSegments(database, SEGMENT_ROWS)
    },
  }
}

/**
 * Truncates segments that have run empty and moves on to the next once the current one has seen so many rows. Whatever the
 * sessions of this database begin with, this needs a new snapshot for every statement.
 */
async function rotateSegments(db: Pick<Database, 'transaction'>, least: number): Promise<void> {
  await db.transaction((tx) => tx.query(`select ${tx.schema}.rotate_deliveries(($1::text)::bigint)`, [String(least)]), {
    isolation: 'read committed',
  })
}
