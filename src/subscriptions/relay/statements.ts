/** What is kept of a relay besides its checkpoint: which events were published when. */
import type { Queryable } from '../../postgres/index.ts'

/** Notes what was published together. The same again, after a crash before the checkpoint, keeps one row. */
export async function insertBatch(db: Queryable, relay: string, positions: readonly bigint[]): Promise<void> {
  const ranges = positions.map((position) => `[${position},${position + 1n})`)
  await db.query(
    `insert into ${db.schema}.relay_batches as b (relay, first_position, last_position, positions, events)
     values ($1::text, ($2::text)::bigint, ($3::text)::bigint, ($4::text)::int8multirange, ($5::text)::bigint)
     on conflict (relay, last_position) do update
       set first_position = least(b.first_position, excluded.first_position), positions = b.positions + excluded.positions,
           events = greatest(b.events, excluded.events), published_at = clock_timestamp()`,
    [relay, String(positions[0]), String(positions.at(-1)), `{${ranges.join(',')}}`, String(positions.length)],
  )
}

export async function deleteBatches(db: Queryable, relay: string, before: Date): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.relay_batches
      where relay = $1::text
        and published_at < ($2::text)::timestamptz`,
    [relay, before.toISOString()],
  )
  return rowCount
}

/** The same by age, for upkeep: by the clock that wrote the time. */
export async function deleteOldBatches(db: Queryable, relay: string, days: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.relay_batches
      where relay = $1::text
        and published_at < clock_timestamp() - make_interval(days => ($2::text)::integer)`,
    [relay, String(days)],
  )
  return rowCount
}

/** How far it has come; undefined before its first registration. */
export async function selectProgress(
  db: Queryable,
  relay: string,
): Promise<{ position: bigint; done: string } | undefined> {
  const { rows } = await db.query<{ pos: string; done: string }>(
    `select position::text as pos, done::text as done
       from ${db.schema}.subscription_partitions
      where id = $1::text`,
    [relay],
  )
  return rows[0] && { position: BigInt(rows[0].pos), done: rows[0].done }
}
