/**
 * What the planner may find: how large tables are, and what it knows about them. 10 million rows are simulated: the row
 * count of the catalog is raised over the pages that are there, and the planner multiplies. All else is really done.
 */
import type pg from 'pg'

/** Tables that grow with use, and how a row of the scenario becomes the nth of many. */
export const GROWING: Readonly<Record<string, string>> = {
  events: `'position', 1000 + n, 'id', 'fill-' || n, 'aggregate_id', n % 500`,
  event_ids: `'id', 'fill-' || n`,
  streams: `'aggregate_id', 'fill-' || n`,
  letters: `'id', 1000 + n, 'event_id', 'fill-' || n, 'position', 1000 + n, 'key', n % 500,
    'status', case n % 4 when 0 then 'resolved' else 'dead' end, 'parks', n % 4 > 0, 'streak', false`,
  parked: `'position', 1000 + n, 'key', n % 500`,
  processed: `'event_id', 'fill-' || n`,
  deliveries: `'id', 100000 + n, 'key', n % 500, 'unique_key', null, 'run_at', now() + make_interval(secs => n - 1000)`,
  runs: `'event_id', 'fill-' || n, 'position', 1000 + n`,
  workflow_instances: `'id', 'fill-' || n`,
}

/** Growing tables that the scenario does not use. */
export const NOT_PLAYED = [
  'workflow_keys',
  'workflow_inputs',
  'workflow_snapshots',
  'input_observations',
  'push_subscriptions',
  'push_progress',
  'search_documents',
  'relay_batches',
]

/** A row per process, subscription, rule or the like, or a history that is kept short. */
export const BOUNDED = [
  'audit',
  'backfills',
  'captured_tables',
  'checkpoint_marks',
  'delivery_lanes',
  'delivery_pauses',
  'delivery_state',
  'delivery_workers',
  'destinations',
  'epochs',
  'frontier_marks',
  'granted_roles',
  'id_turns',
  'imports',
  'idle_marks',
  'log_state',
  'migrations',
  'observer_actions',
  'observer_alerts',
  'observer_versions',
  'processes',
  'projection_states',
  'schedules',
  'search_indexes',
  'settings',
  'sql_files',
  'stream_types',
  'subscription_partitions',
  'subscription_versions',
  'subscriptions',
]

const ROWS = 4_000

export interface Situation {
  readonly name: string
  /** Few rows only: what is planned here and kept must do when there are many. */
  readonly isSmall?: boolean
  enter(sql: pg.Client): Promise<void>
}

/** In this order: each begins where the one before ended. */
export const SITUATIONS: readonly Situation[] = [
  { name: 'few rows, no statistics', isSmall: true, enter: forget },
  { name: 'few rows, fresh statistics', isSmall: true, enter: analyze },
  { name: 'many rows, statistics of few', enter: fill },
  { name: 'many rows, fresh statistics', enter: analyze },
  { name: '10 million rows, fresh statistics', enter: simulateMillions },
  { name: 'many rows, no statistics', enter: forget },
]

async function analyze(sql: pg.Client): Promise<void> {
  await sql.query('analyze')
}

async function forget(sql: pg.Client): Promise<void> {
  await sql.query(`delete from pg_statistic where starelid in (
    select oid from pg_class where relnamespace = 'aftercommit'::regnamespace)`)
  await sql.query(`update pg_class set reltuples = -1, relpages = 0
    where relnamespace = 'aftercommit'::regnamespace and relkind in ('r', 'i', 'p')`)
}

async function simulateMillions(sql: pg.Client): Promise<void> {
  await sql.query(`update pg_class set reltuples = reltuples / ${ROWS} * 10000000
    where relnamespace = 'aftercommit'::regnamespace and relkind in ('r', 'i', 'p') and reltuples >= ${ROWS}`)
}

async function fill(sql: pg.Client): Promise<void> {
  await sql.query(`set session_replication_role = replica`)
  for (const [table, changes] of Object.entries(GROWING)) {
    const { rows } = await sql.query(
      `select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
        where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [`aftercommit.${table}`],
    )
    const { columns } = rows[0]
    await sql.query(
      `with known as (select array_agg(to_jsonb(t)) as samples from aftercommit.${table} t)
       insert into aftercommit.${table} (${columns}) overriding system value
       select ${columns}
         from known, generate_series(1, ${ROWS}) n,
              jsonb_populate_record(null::aftercommit.${table},
                samples[1 + n % array_length(samples, 1)] || jsonb_build_object(${changes})) filled`,
    )
  }
  await sql.query(`set session_replication_role = origin`)
}

/** Growing tables and their partitions, without those of so few rows that a scan is the best plan. */
export async function growingRelations(sql: pg.Client, { isSmall = false }: Situation): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query(
    `select c.relname as name from pg_class c left join pg_inherits i on i.inhrelid = c.oid
      where c.relnamespace = 'aftercommit'::regnamespace and c.relkind = 'r'
        and coalesce((select p.relname from pg_class p where p.oid = i.inhparent), c.relname) = any ($1::text[])
        and pg_relation_size(c.oid) >= $2`,
    [Object.keys(GROWING), isSmall ? 0 : 100_000],
  )
  return new Set(rows.map(({ name }) => name))
}

export async function partialIndexes(sql: pg.Client): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query(`select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'aftercommit'::regnamespace and i.indpred is not null`)
  return new Set(rows.map(({ name }) => name))
}
