/**
 * How far a process and the schema have come, counted in breaking migrations: those with `-- older: refuse`. A process that
 * knows fewer of them than the schema has must not write. Functions that append refuse it by themselves; a running process
 * asks now and then, and ends its work.
 */
import { AftercommitError } from '../errors.ts'
import type { Queryable } from './queryable.ts'

/**
 * The version of the last breaking migration that this build knows; 0 for none. Every append states it. A constant of its
 * own: processes that emit load no migrations.
 */
export const SCHEMA_LEVEL = 14

/** The version of the last breaking migration that the schema has; 0 for none. */
export async function selectSchemaLevel(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ level: number }>(
    `select coalesce(max(version), 0) as level from ${db.schema}.migrations where breaks_older`,
  )
  return Number(rows[0]!.level)
}

/** `what`: the thing that was not done, as in "nothing was emitted". */
export function schemaTooNew(what: string, cause?: unknown): AftercommitError {
  return new AftercommitError(
    'SCHEMA_TOO_NEW',
    `The schema was migrated by a newer aftercommit, which processes of this version must not write to, so nothing was ` +
      `${what}. Deploy the newer aftercommit here too.`,
    { cause },
  )
}
