/** What a process tells the others while it asks for nothing, and what it does about claims whose answer was lost. */
import { expect, test } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { Run } from '../../src/delivery/run.ts'
import { createUnansweredClaims } from '../../src/delivery/unanswered-claims.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { enlistByHand } from './support/by-hand.ts'
import { openClaimer } from './support/open-claimer.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

function runFor(destination: string): Run {
  const lane = { ...{ lane: 1, kind: 'effect' as const, name: 'mail', tenant: '', priority: 0 }, destination }
  const row = {
    ...{ segment: 1, id: 1n, token: 1n, lane: 1, owner: 'shop', key: null, payload: '{}', attempts: 1 },
    ...{ createdMs: 0, suspect: false, letter: null },
  }
  return new Run(
    row,
    lane,
    work(() => {}),
  )
}

test('a process without a place to spare says that it is done with a destination that has a limit', async () => {
  const { worker, sql } = await openDelivering()
  const { database, add } = await worker()
  await enlistByHand(sql)
  await saveLimits(database, [{ destination: 'erp', concurrency: 10, rate: null, burst: null }])
  const { claimer, inFlight, pass } = openClaimer(database)
  const running = async () =>
    (await sql.query(`select running from aftercommit.delivery_workers where worker = 'by hand'`)).rows[0].running
  await add(database, mails(10, { destination: 'erp' }))
  expect((await claimer.claim('by hand', 0)).rows).toHaveLength(10)
  expect(await running()).toEqual({ erp: 10 })
  // All of them are done, and other work has taken their places.
  await sql.query('delete from aftercommit.deliveries')
  for (let n = 0; n < 500; n++) inFlight.waiting.push(runFor(''))
  pass(1_000)
  expect(await claimer.claim('by hand', 0)).toMatchObject({ rows: [] })
  expect(await running()).toEqual({})
  // So that others may have what it does not use.
  await add(database, mails(20, { destination: 'erp' }))
  const other = await worker({ concurrency: 20, drainMs: () => 10 })
  let begun = 0
  other.register(work(() => new Promise(() => void begun++)))
  await eventually(() => begun === 10)
})

for (const major of [18, 14] as const) {
  test(`a claim whose statement ends long after its answer was given up is given back on Postgres ${major}`, async () => {
    const { url, worker, sql } = await openDelivering({ major })
    const { database, add } = await worker()
    await add(database, mails(1))
    let now = 0
    const doubts = createUnansweredClaims(database.control, { ...systemClock, monotonic: () => now })
    const held = async () => (await sql.query('select from aftercommit.deliveries where token is not null')).rowCount
    // Hangs, as while its commit waits for a standby.
    const hanging = await connect(url)
    await hanging.query('begin')
    await hanging.query(`update aftercommit.deliveries set token = 7, worker = 'by hand', attempts = 1`)
    doubts.add(7n)
    await doubts.settle()
    // By the clock of the test it began a little before the doubt is old.
    await eventually(async () => {
      const { rows } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and xact_start < clock_timestamp() - interval '50 ms'`,
      )
      return rows.length > 0
    })
    now += 70_001
    await doubts.settle()
    await hanging.query('commit')
    expect(await held()).toBe(1)
    now += 3_600_000
    await doubts.settle()
    expect(await held()).toBe(0)
    // Nothing that began then is still under way, so nothing is asked for any more.
    now += 3_600_000
    expect(doubts.settle()).toBeUndefined()
  })
}
