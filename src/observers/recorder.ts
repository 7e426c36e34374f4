/**
 * Writes run records of later attempts, many in one statement: while one is under way, records that come meanwhile wait for
 * the next. A database that refuses a record costs the record, never the attempt. Records of first attempts go with the
 * checkpoint.
 */
import { stringifyJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type Clock, createBatcher, type Logger, retryUntil } from '../runtime/index.ts'
import type { RunRecord } from './run-record.ts'

export interface Recorder {
  /** Resolves when it is written, or given up. */
  add(record: RunRecord): Promise<void>
}

const MOST_AT_ONCE = 1_000
const ATTEMPTS = 3

export function createRecorder({ db, clock, logger }: { db: Queryable; clock: Clock; logger: Logger }): Recorder {
  const add = createBatcher<RunRecord, void>({
    take: ({ length }) => Math.min(length, MOST_AT_ONCE),
    async write(records) {
      await retryUntil(() => insertRuns(db, records), {
        clock,
        mayRetry: (_, attempt) => attempt < ATTEMPTS,
        delay: (attempt) => 100 * attempt,
      }).catch((error) => {
        const fields = { err: error, records: records.length }
        logger.error(fields, 'run records were not written; what they tell of happened')
      })
      return []
    },
  })
  return { add }
}

async function insertRuns(db: Queryable, records: readonly RunRecord[]): Promise<void> {
  await db.query(
    `insert into ${db.schema}.runs
       (event_id, position, owner, event_type, aggregate_type, aggregate_id, tenant, trace_id, attempt, actions, status, duration_ms)
     select * from jsonb_to_recordset(($1::text)::jsonb)
       as r(event_id text, position bigint, observer text, event_type text, aggregate_type text, aggregate_id text, tenant text,
            trace_id text, attempt integer, actions jsonb, status text, duration_ms double precision)`,
    [stringifyJson(records, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 100, name: 'run records' })],
  )
}
