/** Settings that live in the database, because SQL functions and every process must agree on them. */
import type { Queryable } from '../postgres/index.ts'

export interface LogSettings {
  readonly wake: 'doorbell' | 'poll'
  readonly maxPayloadBytes: number
  readonly maxDepth: number
  /** Levels of arrays and objects in a payload. */
  readonly maxNesting: number
  readonly partitionSize: number
  /** Null keeps everything. */
  readonly retentionSeconds: number | null
}

export async function readLogSettings(db: Queryable): Promise<LogSettings> {
  const { rows } = await db.query<Record<string, string | number | null>>(
    `select wake, max_payload::text as max_payload, max_depth, max_nesting, partition_size::text as partition_size,
            extract(epoch from retention)::float8 as retention
       from ${db.schema}.settings`,
  )
  const row = rows[0]!
  return {
    wake: row.wake as LogSettings['wake'],
    maxPayloadBytes: Number(row.max_payload),
    maxDepth: Number(row.max_depth),
    maxNesting: Number(row.max_nesting),
    partitionSize: Number(row.partition_size),
    retentionSeconds: row.retention === null ? null : Number(row.retention),
  }
}

/** Changes what is given. Turning the bell off also removes the marks, so that nobody is rung from now on. */
export async function saveLogSettings(db: Queryable, settings: Partial<LogSettings>): Promise<void> {
  const { wake = null, maxPayloadBytes = null, maxDepth = null, maxNesting = null, retentionSeconds } = settings
  await db.query(
    `with saved as (
       update ${db.schema}.settings
          set wake = coalesce($1::text, wake),
              max_payload = coalesce(($2::text)::bigint, max_payload),
              max_depth = coalesce(($3::text)::integer, max_depth),
              max_nesting = coalesce(($6::text)::integer, max_nesting),
              retention = case when $4::boolean then make_interval(secs => ($5::text)::float8) else retention end
        where (wake, max_payload, max_depth, max_nesting, retention) is distinct from (
          coalesce($1::text, wake), coalesce(($2::text)::bigint, max_payload), coalesce(($3::text)::integer, max_depth),
          coalesce(($6::text)::integer, max_nesting),
          case when $4::boolean then make_interval(secs => ($5::text)::float8) else retention end)
       returning wake)
     delete from ${db.schema}.idle_marks where exists (select from saved where wake = 'poll')`,
    [
      wake,
      text(maxPayloadBytes),
      text(maxDepth),
      retentionSeconds !== undefined,
      retentionSeconds === undefined ? null : text(retentionSeconds),
      text(maxNesting),
    ],
  )
}

function text(value: number | null): string | null {
  return value === null ? null : String(value)
}
