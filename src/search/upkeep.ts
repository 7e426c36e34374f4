/** What has to be taken away in time. Any number of processes may do it. */
import type { Queryable } from '../postgres/index.ts'
import { abandonSilent, removeGenerations, removeTombstones } from './upkeep-statements.ts'

/** As long as what is recorded of runs; an older event that is redriven later than that is taken for new. */
const TOMBSTONE_DAYS = 7
const SILENT_MINUTES = 60

export async function keepSearch(db: Queryable): Promise<void> {
  await abandonSilent(db, SILENT_MINUTES)
  while ((await removeGenerations(db)) > 0);
  while ((await removeTombstones(db, TOMBSTONE_DAYS)) > 0);
}
