/** Letters that were dealt with are kept for a while, for whoever asks what became of them. What is dead stays. */
import type { Queryable } from '../postgres/index.ts'

const AT_ONCE = 1_000

/** Many small statements rather than one that holds its locks for long. Any number of processes may do it. */
export async function pruneLetters(db: Queryable, keepSeconds: number): Promise<number> {
  let total = 0
  for (;;) {
    const { rowCount } = await db.query(
      `delete from ${db.schema}.letters
        where id = any (array(
          select id from ${db.schema}.letters
           where status in ('resolved', 'discarded') and (not parks or delivery is not null)
             and changed_at < clock_timestamp() - make_interval(secs => ($1::text)::float8)
           order by changed_at
           limit ${AT_ONCE}
             for update skip locked))`,
      [String(keepSeconds)],
    )
    total += rowCount
    if (rowCount < AT_ONCE) return total
  }
}
