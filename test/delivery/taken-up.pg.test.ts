/** Work that nobody seems to have: left by workers that are gone or were never known, or hidden behind much else. */
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { eventually } from '../support/eventually.ts'
import { claimByHand, NAMES } from './support/by-hand.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('a row that is claimed by a worker without a lease is taken up by another', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const done: bigint[] = []
  one.register(work(({ id }) => void done.push(id)))
  await one.add(one.database, mails(1))
  await eventually(() => done.length === 1)
  await sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload, attempts, token, worker)
     select 1, nextval('aftercommit.delivery_ids'), lane, 'shop', '{"n":2}', 1, 7, 'gone' from aftercommit.delivery_lanes`,
  )
  await sql.query(`insert into aftercommit.delivery_workers (worker, process) values ('gone', '')`)
  one.wake()
  await eventually(() => done.length === 2)
})

test('a row of a worker that is in no table is taken up by the next process that starts', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(one.database, mails(1))
  await sql.query(`update aftercommit.deliveries set token = 7, worker = 'removed by hand', attempts = 1`)
  const done: bigint[] = []
  const two = await worker()
  two.register(work(({ id }) => void done.push(id)))
  await eventually(() => done.length === 1)
})

test('what a dead worker left keeps the limit of its destination', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(one.database, mails(10, { destination: 'erp' }))
  await saveLimits(one.database, [{ destination: 'erp', concurrency: 1, rate: null, burst: null }])
  await sql.query(`insert into aftercommit.delivery_workers (worker, process) values ('dead', 'p')`)
  await sql.query(`update aftercommit.deliveries set token = 5, worker = 'dead', attempts = 1 where id <= 5`)
  let [running, most, done] = [0, 0, 0]
  const run = async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, 50))
    running--
    done++
  }
  const two = await worker()
  one.register(work(run))
  two.register(work(run))
  await eventually(() => done === 10)
  expect(most).toBe(1)
})

test('one suspect whose destination rests does not keep those of other destinations waiting', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(one.database, [...mails(2, { destination: 'resting' }), ...mails(2, { destination: 'well' })])
  await sql.query(
    `insert into aftercommit.destinations (destination, resting_until) values ('resting', now() + interval '1 hour')`,
  )
  await sql.query(`insert into aftercommit.delivery_workers (worker, process) values ('dead', 'p')`)
  await sql.query(`update aftercommit.deliveries set token = 5, worker = 'dead', attempts = 1`)
  const done: string[] = []
  one.register(work(({ destination }) => void done.push(destination)))
  await eventually(() => done.length === 2)
  expect(done).toEqual(['well', 'well'])
})

/** Lanes 1 to n, each with one row that is due since an hour; those of `well` since a minute. */
async function fillLanes(sql: pg.Client, { lanes, well, segment }: { lanes: number; well: number[]; segment: number }) {
  await sql.query(
    `insert into aftercommit.delivery_lanes (kind, name, tenant)
     select 'effect', case when n = any ($2) then 'mail' else 'fax' end, n::text from generate_series(1, $1::integer) n`,
    [lanes, well],
  )
  await sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload, run_at)
     select $3, n, n, 'shop', jsonb_build_object('n', n),
            now() - case when n = any ($2) then interval '1 minute' else interval '1 hour' end
       from generate_series(1, $1::integer) n`,
    [lanes, well, segment],
  )
}

describe.each([18, 14] as const)('on Postgres %i', (major) => {
  const both = JSON.stringify(['mail', 'fax'].map((name) => ({ kind: 'effect', name })))
  const ask = async (sql: pg.Client, call: string, names: string) =>
    (await sql.query(`select aftercommit.${call}($1) as answer`, [names])).rows[0].answer

  test.each([
    { segment: 0, held: 'of names that nobody here has' },
    { segment: 0, held: 'paused' },
    { segment: 1, held: 'paused' },
  ])('what is due is found at once although 2,000 lanes of segment $segment hold older work: $held', async (given) => {
    const { sql } = await openDelivering({ major })
    const well = [1, 1_000, 2_000]
    await fillLanes(sql, { lanes: 2_000, well, segment: given.segment })
    if (given.held === 'paused') {
      await sql.query(`insert into aftercommit.delivery_pauses (kind, name, who) values ('effect', 'fax', 'test')`)
    }
    const names = given.held === 'paused' ? both : NAMES
    expect(await ask(sql, 'next_delivery_ms', names)).toBe(0)
    expect(await ask(sql, 'has_due_deliveries', names)).toBe(true)
    expect((await claimByHand(sql, 50, { names })).sort((a, b) => a - b)).toEqual(well)
    expect(await ask(sql, 'has_due_deliveries', names)).toBe(false)
  })

  test('lanes that are held back give no reason to look again soon', async () => {
    const { sql } = await openDelivering({ major })
    await fillLanes(sql, { lanes: 2_000, well: [], segment: 0 })
    expect(await ask(sql, 'next_delivery_ms', NAMES)).toBeNull()
    await sql.query(`insert into aftercommit.delivery_pauses (kind, name, who) values ('effect', 'fax', 'test')`)
    expect(await ask(sql, 'next_delivery_ms', both)).toBeNull()
    expect(await ask(sql, 'has_due_deliveries', both)).toBe(false)
  })

  test('where there are more lanes than one look sees, it is looked again', async () => {
    const { sql } = await openDelivering({ major })
    await fillLanes(sql, { lanes: 4_000, well: [4_000], segment: 0 })
    await sql.query(
      `insert into aftercommit.destinations (destination, resting_until) values ('resting', now() + interval '1 hour')`,
    )
    await sql.query(`update aftercommit.delivery_lanes set destination = 'resting' where name = 'fax'`)
    expect(await ask(sql, 'next_delivery_ms', both)).toBe(0)
    expect(await ask(sql, 'has_due_deliveries', NAMES)).toBe(true)
    expect(await claimByHand(sql, 50)).toEqual([4_000])
  })
})
