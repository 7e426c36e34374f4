import type { Queryable } from '../postgres/index.ts'
import type { LogFacts } from './place.ts'

/** What decides whether a place in the log still means what it meant. `epoch` is that of the place. */
export async function selectFacts(db: Queryable, epoch: number): Promise<LogFacts> {
  const { rows } = await db.query<{ epoch: string; kept: string; last: string; shared: string | null }>(
    `select s.epoch::text as epoch, greatest(s.kept_from, 1)::text as kept, p.last::text as last,
            (select min(e.began_after)::text from ${db.schema}.epochs e where e.epoch > ($1::text)::integer) as shared
       from ${db.schema}.log_state s,
            (select case when is_called then last_value else last_value - 1 end as last from ${db.schema}.positions) p`,
    [String(epoch)],
  )
  const row = rows[0]!
  return {
    epoch: Number(row.epoch),
    keptFrom: BigInt(row.kept),
    last: BigInt(row.last),
    shared: row.shared === null ? undefined : BigInt(row.shared),
  }
}
