import { expect, test } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { countAll } from '../../src/delivery/inspect-counts.ts'
import { selectDeliveries } from '../../src/delivery/inspect-statements.ts'
import type { Parameter, Queryable } from '../../src/postgres/queryable.ts'
import { eventually } from '../support/eventually.ts'
import { mails, work } from './support/open-delivering.ts'
import { openOperating } from './support/open-operating.ts'

test('names with work that no live worker can do are orphans until one comes', async () => {
  const { deliveries, worker } = await openOperating()
  const one = await worker()
  one.register(work(() => {}))
  await one.add(one.database, [
    ...mails(3, { name: 'fax', delayMs: 60_000 }),
    ...mails(2, { name: 'fax', tenant: 'b' }),
  ])
  await one.add(one.database, mails(1, { delayMs: 60_000 }))
  await eventually(async () =>
    expect(await deliveries.orphans()).toEqual([{ kind: 'effect', name: 'fax', count: 5, oldest: expect.any(Date) }]),
  )
  one.register(work(() => {}, { name: 'fax' }))
  await eventually(async () => (await deliveries.orphans()).length === 0)
  expect(await deliveries.names()).toEqual([
    { kind: 'effect', name: 'fax', workers: 1, paused: false },
    { kind: 'effect', name: 'mail', workers: 1, paused: false },
  ])
  one.unregister('effect', 'mail')
  await eventually(async () => expect(await deliveries.orphans()).toMatchObject([{ name: 'mail', count: 1 }]))
  await one.service.stop()
  expect(await deliveries.orphans()).toMatchObject([{ name: 'fax' }, { name: 'mail' }])
})

test('destinations tell their limits, what runs there, and how their circuit stands', async () => {
  const { deliveries, worker, database } = await openOperating()
  const one = await worker()
  await saveLimits(database, [{ destination: 'https://limited.example', concurrency: 3, rate: 5, burst: 10 }])
  one.register(work(() => Promise.reject(Object.assign(new Error('503'), { transient: true, retryAfterMs: 60_000 }))))
  await one.add(one.database, mails(1, { destination: 'https://asks.example' }))
  for (let n = 0; n < 5; n++)
    await one.add(one.database, mails(1, { destination: `https://broken.example`, name: 'mail' }))
  await one.add(one.database, mails(1, { destination: 'https://far.example', delayMs: 60_000 }))
  const found = await eventually(async () => {
    const all = Object.fromEntries((await deliveries.destinations()).map((each) => [each.destination, each]))
    return all['https://asks.example']?.restingUntil && all['https://asks.example'].waiting === 1 ? all : undefined
  })
  expect(found['https://limited.example']).toMatchObject({
    concurrency: 3,
    rate: 5,
    burst: 10,
    circuit: 'closed',
    failures: 0,
    openedAt: null,
    waiting: 0,
  })
  expect(found['https://asks.example']).toMatchObject({ circuit: 'closed', failures: 1, waiting: 1, concurrency: null })
  expect(found['https://far.example']).toMatchObject({ circuit: 'closed', waiting: 1, running: 0, paused: false })
})

test('five failures in a row open the circuit, which the metrics tell', async () => {
  const { deliveries, worker, metrics } = await openOperating()
  const one = await worker()
  one.register(work(() => Promise.reject(Object.assign(new Error('503'), { transient: true }))))
  await one.add(one.database, mails(5, { destination: 'https://broken.example' }))
  const [broken] = await eventually(async () => {
    const all = await deliveries.destinations()
    return all[0]?.circuit === 'open' ? all : undefined
  })
  expect(broken!.failures).toBeGreaterThanOrEqual(5)
  expect(broken!.openUntil!.getTime()).toBeGreaterThan(broken!.openedAt!.getTime())
  await eventually(async () => {
    expect(await metrics.text()).toContain('aftercommit_destination_open{destination="https://broken.example"} 1')
    return true
  })
})

test('metrics count deliveries by state and timers that are due', async () => {
  const { worker, metrics } = await openOperating()
  const one = await worker()
  await one.add(one.database, [
    ...mails(2),
    ...mails(1, { kind: 'timer' }),
    ...mails(1, { kind: 'timer', delayMs: 9e6 }),
  ])
  await eventually(async () => {
    const text = await metrics.text()
    expect(text).toContain('aftercommit_deliveries{state="waiting"} 3')
    expect(text).toContain('aftercommit_deliveries{state="scheduled"} 1')
    expect(text).toContain('aftercommit_deliveries{state="running"} 0')
    expect(text).toContain('aftercommit_timers_due 1')
    return true
  })
})

test('a page of 100,000 deliveries is read by index, and counting them joins a handful of rows', async () => {
  const { sql, deliveries, worker } = await openOperating()
  const one = await worker()
  await one.add(one.database, mails(1))
  await sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload)
     select n % 5, 10 + n, lane, 'shop', '{}' from generate_series(1, 100000) n, aftercommit.delivery_lanes`,
  )
  await sql.query('analyze aftercommit.deliveries')
  const page = await deliveries.list({ after: 50_000n, limit: 100 })
  expect(page.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, n) => 50_001n + BigInt(n)))
  const listed = await planOf((db) => selectDeliveries(db, { after: 50_000n }, { limit: 100, newest: false }))
  expect(listed).toContain('deliveries_4_pkey')
  expect(listed).not.toMatch(/Seq Scan on deliveries/)
  expect(await deliveries.count()).toMatchObject({ waiting: 100_001 })
  const counted = await planOf((db) => countAll(db))
  expect(counted.indexOf('Join')).toBeLessThan(counted.indexOf('HashAggregate', counted.indexOf('Join')))

  async function planOf(ask: (db: Queryable) => Promise<unknown>): Promise<string> {
    let plan = ''
    const query = async (text: string, values: readonly Parameter[] = []) => {
      const { rows } = await sql.query(`explain ${text}`, [...values])
      plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      return { rows: [], rowCount: 0 }
    }
    await ask({ schema: 'aftercommit', query } as Queryable)
    return plan
  }
})
