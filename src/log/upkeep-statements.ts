/** Partitions, retention and indexes. What names tables is DDL and needs the owner; splitting is a function of ours. */
import type { Queryable } from '../postgres/index.ts'

export interface Partition {
  readonly name: string
  /** Positions from here … */
  readonly from: bigint
  /** … to below here; null for the open one. */
  readonly to: bigint | null
  /** Half detached by a retention that was interrupted. */
  readonly detaching: boolean
}

export async function splitPartitions(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ added: string }>(`select unnest(${db.schema}.split_partitions()) as added`)
  return rows.map((row) => row.added)
}

export async function listPartitions(db: Queryable): Promise<Partition[]> {
  const { rows } = await db.query<{ name: string; low: string; high: string | null; detaching: boolean }>(
    `select c.relname as name,
            substring(pg_get_expr(c.relpartbound, c.oid) from 'FROM \\(''(\\d+)''\\)') as low,
            substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''(\\d+)''\\)') as high,
            i.inhdetachpending as detaching
       from pg_catalog.pg_inherits i
       join pg_catalog.pg_class c on c.oid = i.inhrelid
      where i.inhparent = pg_catalog.to_regclass($1::text)
      order by substring(pg_get_expr(c.relpartbound, c.oid) from 'FROM \\(''(\\d+)''\\)')::bigint`,
    [`${db.schema}.events`],
  )
  return rows.map((row) => ({
    name: row.name,
    from: BigInt(row.low),
    to: row.high === null ? null : BigInt(row.high),
    detaching: row.detaching,
  }))
}

/** Whether everything in a partition was recorded before the retention began. An empty one has nothing to keep. */
export async function isOutOfRetention(db: Queryable, partition: Partition): Promise<boolean> {
  const { rows } = await db.query<{ old: boolean }>(
    `select not exists (
       select from ${db.schema}.events
        where position >= ($1::text)::bigint and position < ($2::text)::bigint
          and recorded_at >= clock_timestamp() - (select retention from ${db.schema}.settings)) as old`,
    [String(partition.from), String(partition.to)],
  )
  return rows[0]!.old
}

export interface UpkeepState {
  readonly retention: boolean
  readonly frontier: bigint
  readonly mayAlter: boolean
}

export async function readUpkeepState(db: Queryable): Promise<UpkeepState> {
  const { rows } = await db.query<{ retention: boolean; frontier: string; owner: boolean }>(
    `select s.retention is not null as retention, l.frontier::text as frontier,
            pg_catalog.pg_has_role(c.relowner, 'usage') as owner
       from ${db.schema}.settings s, ${db.schema}.log_state l, pg_catalog.pg_class c
      where c.oid = pg_catalog.to_regclass($1::text)`,
    [`${db.schema}.events`],
  )
  const row = rows[0]!
  return { retention: row.retention, frontier: BigInt(row.frontier), mayAlter: row.owner }
}

/** Said before the first event goes, so that readers and checks know it was on purpose. */
export async function keepFrom(db: Queryable, position: bigint): Promise<void> {
  await db.query(`update ${db.schema}.log_state set kept_from = greatest(kept_from, ($1::text)::bigint)`, [
    position.toString(),
  ])
}

export async function detachPartition(db: Queryable, name: string, interrupted: boolean): Promise<void> {
  await db.query(
    `alter table ${db.schema}.events detach partition ${db.schema}.${quoted(name)} ${interrupted ? 'finalize' : 'concurrently'}`,
  )
}

export async function dropPartition(db: Queryable, name: string): Promise<void> {
  await db.query(`drop table if exists ${db.schema}.${quoted(name)}`)
}

/** Tables that were detached and not dropped before somebody stopped us. */
export async function listDetached(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select c.relname as name
       from pg_catalog.pg_class c
       join pg_catalog.pg_class parent on parent.oid = pg_catalog.to_regclass($1::text) and parent.relnamespace = c.relnamespace
      where c.relkind = 'r'
        and not c.relispartition
        and c.relname ~ '^events_\\d{12,}$'`,
    [`${db.schema}.events`],
  )
  return rows.map((row) => row.name)
}

/** What closed partitions are searched by; building these on the partition that is written to would tax every append. */
const CLOSED_INDEXES = {
  correlation: `((metadata ->> 'correlation_id'))`,
  causation: `((metadata ->> 'causation_id'))`,
  type: '(type, position)',
} as const

/** Index names that a closed partition should have, and whether each is there and valid. */
export async function missingIndexes(
  db: Queryable,
  partition: string,
): Promise<{ name: string; sql: string; broken: boolean }[]> {
  const wanted = Object.entries(CLOSED_INDEXES).map(([what, columns]) => {
    const name = `${partition}_${what}`
    const sql = `create index concurrently ${quoted(name)} on ${db.schema}.${quoted(partition)} ${columns}`
    return { name, sql }
  })
  const { rows } = await db.query<{ name: string; valid: boolean }>(
    `select c.relname as name, i.indisvalid as valid
       from pg_catalog.pg_index i
       join pg_catalog.pg_class c on c.oid = i.indexrelid
      where i.indrelid = pg_catalog.to_regclass($1::text)`,
    [`${db.schema}.${quoted(partition)}`],
  )
  const present = new Map(rows.map((row) => [row.name, row.valid]))
  return wanted
    .filter(({ name }) => present.get(name) !== true)
    .map((index) => ({ ...index, broken: present.has(index.name) }))
}

export async function dropIndex(db: Queryable, name: string): Promise<void> {
  await db.query(`drop index concurrently if exists ${db.schema}.${quoted(name)}`)
}

/** Processes not heard of for a day, and where the frontier stood a month ago, are no longer worth a row. */
export async function forgetProcesses(db: Queryable): Promise<void> {
  await db.query(
    `with marks as (delete from ${db.schema}.idle_marks where idle_until < clock_timestamp() - interval '1 day'),
     stood as (delete from ${db.schema}.frontier_marks where at < clock_timestamp() - interval '30 days')
     delete from ${db.schema}.processes where heartbeat_at < clock_timestamp() - interval '1 day'`,
  )
}

/** Names of partitions are ours: letters, digits, underscores. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
