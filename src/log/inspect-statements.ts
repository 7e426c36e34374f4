/** What `status` and `doctor` ask of the log. All of it reads; nothing here begins an epoch or moves anything. */
import type { Queryable } from '../postgres/index.ts'

export interface Rights {
  readonly role: string
  readonly installed: boolean
  readonly owner: string | null
  readonly isOwner: boolean
  readonly mayEmit: boolean
  readonly mayRead: boolean
  /** Sees whose transaction holds the frontier back, whoever that is. */
  readonly seesSessions: boolean
}

/** By catalogue alone: looking a table up by name fails where the schema may not be used. */
export async function selectRights(db: Queryable, schema: string): Promise<Rights> {
  const { rows } = await db.query<Record<string, string | boolean | null>>(
    `select current_user::text as role,
            e.oid is not null as installed,
            pg_catalog.pg_get_userbyid(e.relowner)::text as owner,
            coalesce(pg_catalog.pg_has_role(e.relowner, 'usage'), false) as isowner,
            coalesce(pg_catalog.has_schema_privilege(n.oid, 'usage'), false)
              and coalesce(pg_catalog.has_function_privilege(a.oid, 'execute'), false) as emit,
            coalesce(pg_catalog.has_schema_privilege(n.oid, 'usage'), false)
              and coalesce(pg_catalog.has_table_privilege(e.oid, 'select'), false)
              and coalesce(pg_catalog.has_function_privilege(c.oid, 'execute'), false) as read,
            pg_catalog.pg_has_role('pg_read_all_stats', 'usage') as sees
       from (select) one
       left join pg_catalog.pg_namespace n on n.nspname = $1::text
       left join pg_catalog.pg_class e on e.relnamespace = n.oid and e.relname = 'events'
       left join pg_catalog.pg_proc a on a.pronamespace = n.oid and a.proname = 'append'
       left join pg_catalog.pg_proc c on c.pronamespace = n.oid and c.proname = 'check_log'`,
    [schema],
  )
  const row = rows[0]!
  return {
    role: String(row.role),
    installed: row.installed === true,
    owner: row.owner as string | null,
    isOwner: row.isowner === true,
    mayEmit: row.emit === true,
    mayRead: row.read === true,
    seesSessions: row.sees === true,
  }
}

export interface LogBook {
  readonly frontier: bigint
  readonly head: bigint
  /** The last number handed out. */
  readonly sequence: bigint
  readonly sequenceCache: number
  /** False when an event that readers relied on is gone. */
  readonly witnessKept: boolean
  readonly partitionSize: bigint
  readonly retention: boolean
}

/** One statement, one snapshot: the sequence is read in it too, and may only be ahead of the rest. */
export async function selectLogBook(db: Queryable): Promise<LogBook> {
  const { rows } = await db.query<Record<string, string | boolean>>(
    `select l.frontier::text as frontier,
            (select coalesce(max(position), 0) from ${db.schema}.events)::text as head,
            (case when p.is_called then p.last_value else p.last_value - 1 end)::text as sequence,
            (select seqcache from pg_catalog.pg_sequence where seqrelid = pg_catalog.to_regclass($1::text))::text as cache,
            l.witness = 0 or l.witness < l.kept_from
              or exists (select from ${db.schema}.events where position = l.witness and l.witness_id in ('', id)) as kept,
            s.partition_size::text as size,
            s.retention is not null as retention
       from ${db.schema}.log_state l, ${db.schema}.settings s, ${db.schema}.positions p`,
    [`${db.schema}.positions`],
  )
  const row = rows[0]!
  return {
    frontier: BigInt(row.frontier!),
    head: BigInt(row.head!),
    sequence: BigInt(row.sequence!),
    sequenceCache: Number(row.cache),
    witnessKept: row.kept === true,
    partitionSize: BigInt(row.size!),
    retention: row.retention === true,
  }
}

/** Whether this is still the server, timeline and database that the history was written on. */
export async function selectIsSamePlace(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ same: boolean }>(
    `select identity = ${db.schema}.log_identity() as same from ${db.schema}.log_state`,
  )
  return rows[0]!.same
}

export interface EpochStart {
  readonly epoch: number
  readonly beganAfter: bigint
  readonly reason: string
  readonly ageSeconds: number
}

export async function selectLastEpoch(db: Queryable): Promise<EpochStart> {
  const { rows } = await db.query<Record<string, string | number>>(
    `select epoch, began_after::text as began, reason,
            extract(epoch from pg_catalog.clock_timestamp() - at)::float8 as age
       from ${db.schema}.epochs
      order by epoch desc
      limit 1`,
  )
  const row = rows[0]!
  return {
    epoch: Number(row.epoch),
    beganAfter: BigInt(row.began!),
    reason: String(row.reason),
    ageSeconds: Number(row.age),
  }
}

/** Where the run of events that follows a position without a hole ends; looks at 10,000 of them at most. */
export async function selectRunEnd(db: Queryable, after: bigint): Promise<bigint> {
  const { rows } = await db.query<{ reached: string | null }>(
    `select max(position)::text as reached
       from (select position, row_number() over (order by position) as place
               from (select position
                       from ${db.schema}.events
                      where position > ($1::text)::bigint
                      order by position
                      limit 10000) ahead) placed
      where position = ($1::text)::bigint + place`,
    [after.toString()],
  )
  const reached = rows[0]?.reached
  return reached ? BigInt(reached) : after
}

/** Counts end here: behind a frontier that stands still there can be millions of events. */
const MOST_COUNTED = 10_000

/** Events above a position, those that are committed and not final yet; `MOST_COUNTED` where there are as many or more. */
export async function countAbove(db: Queryable, position: bigint): Promise<number> {
  const { rows } = await db.query<{ count: string }>(
    `select count(*)::text as count
       from (select from ${db.schema}.events where position > ($1::text)::bigint order by position limit (select ${MOST_COUNTED})) ahead`,
    [position.toString()],
  )
  return Number(rows[0]!.count)
}

export interface ProcessStatus {
  readonly process: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly configHash: string
  readonly startedSecondsAgo: number
  readonly heartbeatSecondsAgo: number
}

export async function selectProcesses(db: Queryable): Promise<ProcessStatus[]> {
  const { rows } = await db.query<Record<string, string | number>>(
    `select process, host, pid, version, config_hash as config,
            extract(epoch from pg_catalog.clock_timestamp() - started_at)::float8 as started,
            extract(epoch from pg_catalog.clock_timestamp() - heartbeat_at)::float8 as heartbeat
       from ${db.schema}.processes
      order by host, pid`,
  )
  return rows.map((row) => ({
    process: String(row.process),
    host: String(row.host),
    pid: Number(row.pid),
    version: String(row.version),
    configHash: String(row.config),
    startedSecondsAgo: Number(row.started),
    heartbeatSecondsAgo: Number(row.heartbeat),
  }))
}

/** Bytes on disk per partition, indexes included. */
export async function selectPartitionSizes(db: Queryable): Promise<Map<string, number>> {
  const { rows } = await db.query<{ name: string; bytes: string }>(
    `select c.relname::text as name, pg_catalog.pg_total_relation_size(c.oid)::text as bytes
       from pg_catalog.pg_inherits i
       join pg_catalog.pg_class c on c.oid = i.inhrelid
      where i.inhparent = pg_catalog.to_regclass($1::text)`,
    [`${db.schema}.events`],
  )
  return new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]))
}

export async function selectHasEventsFrom(db: Queryable, position: bigint): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select exists (select from ${db.schema}.events where position >= ($1::text)::bigint) as found`,
    [position.toString()],
  )
  return rows[0]!.found
}

/** Indexes whose concurrent build failed: they cost every write and serve no read. */
export async function selectInvalidIndexes(db: Queryable, schema: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select c.relname::text as name
       from pg_catalog.pg_index i
       join pg_catalog.pg_class c on c.oid = i.indexrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1::text
        and not i.indisvalid
        and c.relkind = 'i'
      order by 1`,
    [schema],
  )
  return rows.map(({ name }) => name)
}
