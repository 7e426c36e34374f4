/**
 * Writes run records of later attempts, many in one statement: while one is under way, records that come meanwhile wait for
 * the next. A database that refuses a record costs the record, never the attempt. Records of first attempts go with the
 * checkpoint.
 */
import { stringifyJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Clock, Logger } from '../runtime/index.ts'
import type { RunRecord } from './run-record.ts'

export interface Recorder {
  /** Resolves when it is written, or given up. */
  add(record: RunRecord): Promise<void>
}

const MOST_AT_ONCE = 1_000
const ATTEMPTS = 3

export function createRecorder({ db, clock, logger }: { db: Queryable; clock: Clock; logger: Logger }): Recorder {
  let waiting: RunRecord[] = []
  let written: Promise<void> | undefined

  async function write(): Promise<void> {
    // One turn of the event loop: what ends together is written together.
    await new Promise(setImmediate)
    const batch = waiting
    waiting = []
    written = undefined
    for (let first = 0; first < batch.length; first += MOST_AT_ONCE)
      await insert(batch.slice(first, first + MOST_AT_ONCE))
  }

  async function insert(records: readonly RunRecord[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await insertRuns(db, records)
      } catch (error) {
        if (attempt >= ATTEMPTS) {
          logger.error(
            { err: error, records: records.length },
            'run records were not written; what they tell of happened',
          )
          return
        }
        await clock.sleep(100 * attempt)
      }
    }
  }

  return {
    add(record) {
      waiting.push(record)
      written ??= write()
      return written
    },
  }
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
