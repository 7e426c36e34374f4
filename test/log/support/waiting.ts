import { connect } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

/** Resolves when so many sessions of the database wait for a lock. A session of its own: statistics stand still inside a transaction. */
export async function sessionsWait(url: string, count: number): Promise<void> {
  const watcher = await connect(url)
  await eventually(async () => {
    const { rowCount } = await watcher.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rowCount === count
  })
}
