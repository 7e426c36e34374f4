/** Work that nobody seems to have: left by workers that are gone or were never known, or hidden behind much else. */
import { expect, test } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { addDeliveries } from '../../src/delivery/statements.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('a row that is claimed by a worker without a lease is taken up by another', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const done: bigint[] = []
  one.register(work(({ id }) => void done.push(id)))
  await one.add(one.database, mails(1))
  await eventually(() => done.length === 1)
  const { rows } = await sql.query(`select lane from aftercommit.delivery_lanes`)
  const claim = { token: 7n, worker: 'gone' }
  const row = { lane: rows[0].lane, owner: 'shop', key: null, ordered: false, uniqueKey: null, payload: '{"n":2}' }
  const tried = { attempts: 1, sinceFirstMs: 0, error: null, claim }
  await addDeliveries(one.database.control, [{ ...row, runAt: null, delayMs: 0, tried }])
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
  await sql.query(
    `insert into aftercommit.delivery_workers (worker, process, lease_until) values ('dead', 'p', '-infinity')`,
  )
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
  await sql.query(
    `insert into aftercommit.delivery_workers (worker, process, lease_until) values ('dead', 'p', '-infinity')`,
  )
  await sql.query(`update aftercommit.deliveries set token = 5, worker = 'dead', attempts = 1`)
  const done: string[] = []
  one.register(work(({ destination }) => void done.push(destination)))
  await eventually(() => done.length === 2)
  expect(done).toEqual(['well', 'well'])
})

test('what is due in one lane is found although 2,000 others hold older work that is paused', async () => {
  const { sql } = await openDelivering()
  await sql.query(
    `insert into aftercommit.delivery_lanes (kind, name, tenant)
     select 'action', case when n in (1, 1000, 2000) then 'well' else 'paused' end, n::text from generate_series(1, 2000) n`,
  )
  await sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload, run_at)
     select 0, n, n, 'shop', '{}', now() - case when n in (1, 1000, 2000) then interval '1 minute' else interval '1 hour' end
       from generate_series(1, 2000) n`,
  )
  const found = new Set<number>()
  await eventually(async () => {
    const { rows } = await sql.query('select l from aftercommit.due_lanes(500) l where l in (1, 1000, 2000)')
    for (const { l } of rows) found.add(l)
    return found.size === 3
  })
})
