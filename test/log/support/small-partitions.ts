import type pg from 'pg'

/** Starts the log over with partitions of 100 positions, the smallest there are. Only while it is empty. */
export async function makePartitionsSmall(sql: pg.Client): Promise<void> {
  await sql.query(
    `drop table aftercommit.events_000000000000, aftercommit.events_000001000000, aftercommit.events_open;
     update aftercommit.settings set partition_size = 100;
     select aftercommit.split_partitions()`,
  )
}

export async function partitionNames(sql: pg.Client): Promise<string[]> {
  const { rows } = await sql.query(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'aftercommit.events'::regclass order by 1`,
  )
  return rows.map(({ name }) => name.replace('aftercommit.', ''))
}

/** As the tailer of some process would, once it has read so far: it looks whether history is the one it knows first. */
export async function publishFrontier(sql: pg.Client, position: number): Promise<void> {
  const { rows } = await sql.query(
    `select aftercommit.publish_frontier(o_epoch, $1, $1) as published from aftercommit.check_log()`,
    [position],
  )
  if (!rows[0].published) throw new Error(`the frontier ${position} was not published`)
}
