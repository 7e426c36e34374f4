/** What one kind of work, one destination, one key or one dead worker must not do to the rest. */
import { describe, expect, test } from 'vitest'
import { createDeadLetters } from '../../src/dead-letters/index.ts'
import { saveLimits } from '../../src/delivery/index.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { claimByHand as claim, emptiedTo, NAMES, pagesOfClaim } from './support/by-hand.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('work that goes on and on leaves the remaining places to others', async () => {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency: 10, drainMs: () => 10 })
  let done = 0
  const hangs = new Promise(() => {})
  one.register(work(() => hangs, { name: 'hanging' }))
  one.register(work(() => void done++))
  await one.add(one.database, mails(8, { name: 'hanging' }))
  await eventually(
    async () => (await one.database.query(`select from aftercommit.deliveries where token is not null`)).rowCount === 8,
  )
  await one.add(one.database, mails(300))
  await eventually(() => done === 300)
})

test('destinations that hang take half of the places together, however many they are', async () => {
  const { worker } = await openDelivering()
  let ahead = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead }
  const one = await worker({ concurrency: 12, drainMs: () => 10, clock })
  let [hanging, done] = [0, 0]
  one.register(
    work(
      ({ destination }) => {
        if (destination === 'well') return void done++
        hanging++
        return new Promise(() => {})
      },
      { timeoutMs: 600_000 },
    ),
  )
  await one.add(one.database, [...mails(5, { destination: 'hangs' }), ...mails(5, { destination: 'hangs too' })])
  await eventually(() => hanging >= 10)
  // From here on the two are known to hang. A claim that was under way does not know it; the second one from now does.
  ahead = 2_000
  for (let n = 1; n <= 2; n++) {
    await one.add(one.database, mails(1, { destination: 'well' }))
    await eventually(() => done === n)
  }
  await one.add(one.database, [...mails(20, { destination: 'hangs' }), ...mails(20, { destination: 'hangs too' })])
  await one.add(one.database, mails(200, { destination: 'well' }))
  await eventually(() => done === 202)
  expect(hanging).toBe(10)
})

test('of a limited destination a process claims no more than it can begin', async () => {
  const { worker } = await openDelivering()
  const [one, two] = [await worker({ concurrency: 2 }), await worker({ concurrency: 2 })]
  await saveLimits(one.database, [{ destination: 'erp', concurrency: 3, rate: null, burst: null }])
  let running = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const run = async () => {
    running++
    await released
  }
  await one.add(one.database, mails(10, { destination: 'erp' }))
  one.register(work(run))
  two.register(work(run))
  await eventually(() => running === 3)
  release()
  await eventually(() => running === 10)
})

test('a destination that hangs takes nine tenths of the places at most, over any number of tenants', async () => {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency: 10, drainMs: () => 10 })
  let [hanging, done] = [0, 0]
  one.register(
    work(({ destination }) => {
      if (destination !== 'hangs.example') return void done++
      hanging++
      return new Promise(() => {})
    }),
  )
  const tenants = Array.from({ length: 20 }, (_, n) =>
    mails(5, { destination: 'hangs.example', tenant: `tenant ${n}` }),
  )
  await one.add(one.database, tenants.flat())
  await eventually(() => hanging === 9)
  for (let n = 0; n < 20; n++) await one.add(one.database, mails(5, { destination: `other-${n}.example` }))
  await eventually(() => done === 100)
  expect(hanging).toBe(9)
})

test('due work is found behind any number of lanes that have none', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const later = Array.from({ length: 1_300 }, (_, n) => mails(1, { tenant: `tenant ${n}`, delayMs: 3_600_000 }))
  await one.add(one.database, later.flat())
  await one.add(one.database, mails(1, { tenant: 'the last one' }))
  const done: string[] = []
  one.register(work(({ tenant }) => void done.push(tenant)))
  await eventually(() => done.length > 0)
  expect(done).toEqual(['the last one'])
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 1_300)
})

describe('a limit of a destination', () => {
  test('is not used up by what waits for an earlier one of its key', async () => {
    const { worker, sql } = await openDelivering()
    const one = await worker()
    const words = { destination: 'shop.example', key: 'a', ordered: true }
    await one.add(one.database, mails(3, { ...words, payload: { n: 1 } }))
    await saveLimits(one.database, [{ destination: 'shop.example', concurrency: null, rate: 0.001, burst: 2 }])
    // The first of its key is under way, so the others of that lane cannot be claimed.
    expect(await claim(sql, 50)).toEqual([1])
    await one.add(one.database, mails(1, { destination: 'shop.example', tenant: 'other', payload: { n: 2 } }))
    expect(await claim(sql, 50)).toEqual([2])
    await one.add(one.database, mails(1, { destination: 'shop.example', tenant: 'other', payload: { n: 3 } }))
    expect(await claim(sql, 50)).toEqual([])
  })

  test('of less than one a second still lets one pass', async () => {
    const { worker, sql } = await openDelivering()
    const one = await worker()
    await saveLimits(one.database, [{ destination: 'shop.example', concurrency: null, rate: 0.01, burst: null }])
    await one.add(one.database, mails(3, { destination: 'shop.example' }))
    expect(await claim(sql, 50)).toEqual([1])
    expect(await claim(sql, 50)).toEqual([])
  })

  test('of how many at a time counts what other workers do', async () => {
    const { worker, sql } = await openDelivering()
    const one = await worker({ concurrency: 2, drainMs: () => 10 })
    let running = 0
    one.register(
      work(() => {
        running++
        return new Promise(() => {})
      }),
    )
    await saveLimits(one.database, [{ destination: 'shop.example', concurrency: 3, rate: null, burst: null }])
    await one.add(one.database, mails(2, { destination: 'shop.example' }))
    await eventually(() => running === 2)
    // It has no place for a third one, so it leaves it to others.
    await one.add(one.database, mails(5, { destination: 'shop.example' }))
    expect(await claim(sql, 50)).toHaveLength(1)
    expect(await claim(sql, 50)).toHaveLength(0)
  })
})

test('calls that had begun before a circuit opened do not keep it open for longer', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker({ concurrency: 40 })
  let calls = 0
  one.register(
    work(async () => {
      calls++
      await new Promise(setImmediate)
      throw Object.assign(new Error('503'), { transient: true })
    }),
  )
  await one.add(one.database, mails(200, { destination: 'shop.example' }))
  const row = await eventually(async () => {
    // First: whoever is busy has yet to say how it went there.
    const busy = (await sql.query('select from aftercommit.deliveries where token is not null')).rowCount
    const { rows } = await sql.query(
      "select *, open_until - opened_at < interval '13 seconds' as short from aftercommit.destinations",
    )
    return rows[0]?.opened_at && busy === 0 && rows[0].failures === calls ? rows[0] : undefined
  })
  expect(row).toMatchObject({ short: true, reopened: 0 })
  expect(calls).toBeLessThanOrEqual(40)
})

test('a redriven dead letter goes before what has waited for it, and is done once however often it is asked for', async () => {
  const { worker, sql } = await openDelivering()
  const workers = [await worker(), await worker()]
  const done: number[] = []
  let broken = true
  for (const each of workers) {
    each.register(
      work(async ({ payload }) => {
        const { n } = payload as { n: number }
        if (broken && n === 1) throw new GiveUp('closed')
        done.push(n)
      }),
    )
  }
  const [one] = workers
  await one!.add(one!.database, mails(5, { key: 'a', ordered: true }))
  await eventually(async () => (await sql.query('select from aftercommit.letters')).rowCount === 1)
  broken = false
  const letters = createDeadLetters(one!.database, async () => {})
  const redriven = await Promise.all([1, 2, 3].map(() => letters.redrive({ kind: 'effect' }, { who: 'test' })))
  expect(redriven.reduce((sum, count) => sum + count, 0)).toBe(1)
  for (const each of workers) each.nudged()
  await eventually(() => done.length === 5)
  expect(done).toEqual([1, 2, 3, 4, 5])
  await eventually(
    async () => (await sql.query(`select from aftercommit.letters where status = 'resolved'`)).rowCount === 1,
  )
})

test('a worker that is gone is forgotten once nothing is left of it', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const two = await worker()
  let done = 0
  one.register(work(() => void done++))
  two.register(work(() => void done++))
  await eventually(async () => (await sql.query('select from aftercommit.delivery_workers')).rowCount === 2)
  await two.service.stop()
  one.nudged()
  await eventually(async () => (await sql.query('select from aftercommit.delivery_workers')).rowCount === 1)
})

test('100,000 dead letters of other keys change nothing about what a claim looks at', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(
    one.database,
    mails(50).map((mail, n) => ({ ...mail, key: `key ${n}`, ordered: true })),
  )
  const before = await pagesOfClaim(sql)
  await sql.query(
    `insert into aftercommit.letters (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks, delivery)
     select 'effect', 'shop', 'dead ' || n, 'event ' || n, 0, '{}', '{}', 3, now(), now(), true, '{}' from generate_series(1, 100000) n`,
  )
  await sql.query('analyze aftercommit.letters')
  // A few levels more of an index, for each of the fifty keys.
  expect(await pagesOfClaim(sql)).toBeLessThan(before + 200)
})

test('100,000 deliveries that are due tomorrow change nothing about what a claim looks at', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(one.database, mails(50))
  const before = await pagesOfClaim(sql)
  await sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload, run_at)
     select 0, nextval('aftercommit.delivery_ids'), lane, 'shop', '{}', now() + interval '1 day'
       from aftercommit.delivery_lanes, generate_series(1, 100000)`,
  )
  // Without statistics the planner may be right by chance.
  await sql.query('vacuum analyze aftercommit.deliveries')
  expect(await pagesOfClaim(sql)).toBeLessThan(before + 100)
})

test('a look that finds nothing says when to look next', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const next = async () => (await sql.query('select aftercommit.next_delivery_ms($1) as ms', [NAMES])).rows[0].ms
  expect(await next()).toBeNull()
  await one.add(one.database, mails(1, { delayMs: 3_600_000 }))
  expect(await next()).toBeGreaterThan(3_000_000)
  await one.add(one.database, mails(1, { destination: 'paused' }))
  expect(await next()).toBe(0)
  // What somebody must resume is not looked for; what a circuit holds back is, now and then.
  await sql.query(`insert into aftercommit.destinations (destination, paused) values ('paused', true)`)
  expect(await next()).toBeGreaterThan(3_000_000)
  await sql.query(
    `insert into aftercommit.destinations (destination, opened_at, open_until) values ('open', now(), now() + interval '1 hour')`,
  )
  await one.add(one.database, mails(1, { destination: 'open' }))
  expect(await next()).toBeGreaterThan(500)
  expect(await next()).toBeLessThanOrEqual(1_000)
})

test('an old snapshot does not make claims look at more and more: segments are emptied all the same', async () => {
  const { worker, sql, url } = await openDelivering()
  const one = await worker()
  let done = 0
  one.register(work(() => void done++))
  const old = await connect(url)
  await old.query('begin isolation level repeatable read')
  const { rows } = await old.query('select pg_backend_pid() as pid, count(*) from pg_class')
  const rounds = 8
  for (let round = 1; round <= rounds; round++) {
    await one.add(one.database, mails(1_500))
    await eventually(() => done === round * 1_500)
    await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
    await sql.query('select aftercommit.rotate_deliveries(1000)')
  }
  // One segment of 1,500 rows is about 600 kB; all of them would be 4.8 MB.
  await eventually(async () => (await emptiedTo(sql)) < 2_000_000)
  const { rows: holders } = await sql.query(
    `select from pg_stat_activity where pid = $1 and state = 'idle in transaction' and backend_xmin is not null`,
    [rows[0].pid],
  )
  expect(holders).toHaveLength(1)
})

test('segments are only emptied where every statement has a snapshot of its own', async () => {
  const { worker, sql } = await openDelivering()
  const { rows } = await sql.query('select current_database() as name')
  await sql.query(`alter database ${rows[0].name} set default_transaction_isolation = 'repeatable read'`)
  const one = await worker()
  let done = 0
  one.register(work(() => void done++))
  for (let round = 1; round <= 4; round++) {
    await one.add(one.database, mails(1_500))
    await eventually(() => done === round * 1_500)
  }
  await eventually(async () => {
    await one.add(one.database, mails(1))
    return Number((await sql.query('select segment from aftercommit.delivery_state')).rows[0].segment) > 1
  })
  await sql.query('begin isolation level repeatable read')
  await expect(sql.query('select aftercommit.rotate_deliveries(1)')).rejects.toThrow('READ COMMITTED')
  await sql.query('rollback')
})
