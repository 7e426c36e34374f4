/**
 * What the tailer asks the database. All of it runs in READ COMMITTED, where every statement has a snapshot of its own;
 * the order of the statements inside `readPastHole` is the algorithm (see frontier.ts).
 */
import type { Pool, Queryable } from '../postgres/index.ts'
import { type EventRow, eventColumns } from './event-row.ts'
import { findHolders, type HeldLocks, type Observation } from './frontier.ts'
import { PAGE_BYTES } from './page-size.ts'

/** What several statements in one message go through. */
type Messenger = Pick<Pool, 'schema' | 'queryMany'>

export interface LogObjects {
  readonly sequence: string
  readonly events: string
  readonly database: string
}

/** Numbers of the sequence, the table and the database, by which their locks are found. They change with a restore. */
export async function findLogObjects(db: Queryable): Promise<LogObjects> {
  const { rows } = await db.query<LogObjects>(
    `select c.oid::text as sequence, pg_catalog.to_regclass($2::text)::oid::text as events, d.oid::text as database
       from pg_catalog.pg_class c, pg_catalog.pg_database d
      where c.oid = pg_catalog.to_regclass($1::text)
        and d.datname = current_database()`,
    [`${db.schema}.positions`, `${db.schema}.events`],
  )
  return rows[0]!
}

/** Rows above a position. Enough while no number is missing. */
export async function readRows(
  db: Messenger,
  after: bigint,
  limit: number,
  maxBytes = PAGE_BYTES,
): Promise<EventRow[]> {
  const [result] = await db.queryMany(selectRows(db.schema, after, limit, maxBytes))
  return result!.rows as unknown as EventRow[]
}

/** Observation and new read in one round trip and five statements: begin, head, holders, rows, commit. */
export async function readPastHole(
  db: Messenger,
  objects: LogObjects,
  after: bigint,
  limit: number,
  maxBytes = PAGE_BYTES,
): Promise<{ observation: Observation; rows: EventRow[] }> {
  const [, head, holders, rows] = await db.queryMany(
    `begin isolation level read committed read only;
     ${selectHead(db.schema)};
     ${selectHolders(objects)};
     ${selectRows(db.schema, after, limit, maxBytes)};
     commit`,
  )
  return { observation: toObservation(head!.rows, holders!.rows), rows: rows!.rows as unknown as EventRow[] }
}

/** Head, then holders: the observation alone, each in its own statement. */
export async function observe(db: Messenger, objects: LogObjects): Promise<Observation> {
  const [, head, holders] = await db.queryMany(
    `begin isolation level read committed read only;
     ${selectHead(db.schema)};
     ${selectHolders(objects)};
     commit`,
  )
  return toObservation(head!.rows, holders!.rows)
}

function toObservation(head: Record<string, unknown>[], locks: Record<string, unknown>[]): Observation {
  return {
    head: BigInt((head[0]?.head as string | null) ?? 0),
    holders: findHolders(locks as unknown as HeldLocks[]),
    numberHolders: (locks as unknown as HeldLocks[]).filter((one) => one.of_sequence).map(({ holder }) => holder),
  }
}

function selectHead(schema: string): string {
  return `select max(position)::text as head from ${schema}.events`
}

/** Never joined with pg_stat_activity: a prepared transaction has no pid, and the join would drop it. */
function selectHolders(objects: LogObjects): string {
  return `select virtualtransaction as holder, pg_catalog.bool_or(relation = ${objects.sequence}::oid) as of_sequence,
            pg_catalog.bool_or(relation = ${objects.events}::oid) as of_events
       from pg_catalog.pg_locks
      where locktype = 'relation'
        and relation in (${objects.sequence}::oid, ${objects.events}::oid)
        and database = ${objects.database}::oid
        and mode = 'RowExclusiveLock'
        and granted
      group by virtualtransaction`
}

/** At least one row, then as many as a page may weigh. The planner does not see the limit: on a small log without statistics it would rather sort all of it (decision 0016). */
function selectRows(schema: string, after: bigint, limit: number, maxBytes: number): string {
  return `select ${eventColumns}
       from (select *, sum(bytes) over (order by position rows unbounded preceding) - bytes as bytes_before
               from (select * from ${schema}.events where position > ${after} order by position limit (select ${limit})) page) page
      where bytes_before < ${maxBytes}
      order by position`
}

export interface Holder {
  /** What it is and how to end it: a session by pid, a prepared transaction by its name. */
  readonly pid: number | null
  readonly preparedGid: string | null
  readonly application: string | null
  readonly user: string | null
  readonly state: string | null
  readonly ageSeconds: number | null
}

/** Who keeps numbers open right now, oldest first. Names and ages need pg_read_all_stats for other users' sessions. */
export async function describeHolders(db: Queryable): Promise<Holder[]> {
  const { rows } = await db.query<Record<string, string | number | null>>(
    `select l.pid, p.gid, a.application_name, coalesce(a.usename, p.owner) as usename, a.state,
            extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8 as age
       from pg_catalog.pg_locks l
       left join pg_catalog.pg_stat_activity a on a.pid = l.pid
       left join pg_catalog.pg_locks x
         on x.virtualtransaction = l.virtualtransaction and x.locktype = 'transactionid' and l.pid is null
       left join pg_catalog.pg_prepared_xacts p on p.transaction = x.transactionid
      where l.locktype = 'relation'
        and l.relation = pg_catalog.to_regclass($1::text)
        and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
        and l.mode = 'RowExclusiveLock'
        and l.granted
        and exists (
          select from pg_catalog.pg_locks e
           where e.virtualtransaction = l.virtualtransaction and e.locktype = 'relation' and e.database = l.database
             and e.relation = pg_catalog.to_regclass($2::text) and e.mode = 'RowExclusiveLock' and e.granted)
      order by age desc nulls last`,
    [`${db.schema}.positions`, `${db.schema}.events`],
  )
  return rows.map((row) => ({
    pid: row.pid === null ? null : Number(row.pid),
    preparedGid: row.gid as string | null,
    application: row.application_name as string | null,
    user: row.usename as string | null,
    state: row.state as string | null,
    ageSeconds: row.age === null ? null : Number(row.age),
  }))
}

export interface LogCheck {
  readonly epoch: number
  readonly frontier: bigint
  readonly head: bigint
  /** Why a new epoch began just now. */
  readonly began: string | null
  /** Why the log cannot be read safely. */
  readonly problem: string | null
}

export async function checkLog(db: Queryable): Promise<LogCheck> {
  const { rows } = await db.query<Record<string, string | null>>(
    `select o_epoch::text as epoch, o_frontier::text as frontier, o_head::text as head, o_began as began, o_problem as problem
       from ${db.schema}.check_log()`,
  )
  const row = rows[0]!
  return {
    epoch: Number(row.epoch),
    frontier: BigInt(row.frontier!),
    head: BigInt(row.head!),
    began: row.began ?? null,
    problem: row.problem ?? null,
  }
}

/** Where an epoch began, if it did. */
export async function epochBegan(db: Queryable, epoch: number): Promise<bigint | undefined> {
  const { rows } = await db.query<{ began_after: string }>(
    `select began_after::text as began_after from ${db.schema}.epochs where epoch = ($1::text)::integer`,
    [String(epoch)],
  )
  return rows[0] && BigInt(rows[0].began_after)
}

/** False: nothing was published, because `checkLog` must look first whether history has forked. */
export async function publishFrontier(
  db: Queryable,
  epoch: number,
  frontier: bigint,
  witness: bigint,
): Promise<boolean> {
  const { rows } = await db.query<{ published: boolean }>(
    `select ${db.schema}.publish_frontier(($1::text)::integer, ($2::text)::bigint, ($3::text)::bigint) as published`,
    [String(epoch), frontier.toString(), witness.toString()],
  )
  return rows[0]!.published
}
