import type pg from 'pg'

/** Retention has dropped everything below a position. */
export async function dropHistory(sql: pg.Client, below: bigint): Promise<void> {
  await sql.query('update aftercommit.log_state set kept_from = greatest(kept_from, $1)', [below.toString()])
  await sql.query('delete from aftercommit.events where position < $1', [below.toString()])
}
