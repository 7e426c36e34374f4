import { expect, test } from 'vitest'
import { createRecorder } from '../../src/observers/recorder.ts'
import type { RunRecord } from '../../src/observers/run-record.ts'
import { silentLogger, systemClock } from '../../src/runtime/index.ts'
import { connect, openDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

test('run records of later attempts occupy one connection: while one write waits, records gather for the next', async () => {
  const { url } = await testDatabase({ migrated: true })
  const db = openDatabase({ database: url })
  const sql = await connect(url)
  // Within a transaction the list of activities stands still.
  const watch = await connect(url)
  const { add } = createRecorder({ db, clock: systemClock, logger: silentLogger })
  await sql.query('begin; lock table aftercommit.runs in exclusive mode')
  const writing = async () => {
    const { rows } = await watch.query(
      `select count(*)::int as n from pg_stat_activity where query like '%.runs%' and wait_event_type = 'Lock'`,
    )
    return rows[0].n as number
  }
  const written: Promise<void>[] = [add(recordAt(1))]
  await eventually(async () => (await writing()) === 1)
  for (let position = 2; position <= 6; position++) {
    written.push(add(recordAt(position)))
    await watch.query('select 1')
  }
  expect(await writing()).toBe(1)
  await sql.query('commit')
  await Promise.all(written)
  const { rows } = await sql.query(
    'select count(*)::int as n, count(distinct xmin::text)::int as writes from aftercommit.runs',
  )
  expect(rows).toEqual([{ n: 6, writes: 2 }])
})

function recordAt(position: number): RunRecord {
  return {
    event_id: `event-${position}`,
    position: String(position),
    observer: 'mails',
    event_type: 'order.placed',
    aggregate_type: null,
    aggregate_id: null,
    tenant: null,
    trace_id: null,
    attempt: 2,
    actions: [],
    status: 'success',
    duration_ms: 1,
  }
}
