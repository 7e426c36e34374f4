import { expect, test } from 'vitest'
import { GiveUp, RetryAfter } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { emptiedTo } from './support/by-hand.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

for (const major of [18, 14] as const) {
  test(`10,000 deliveries are done once each by three workers on Postgres ${major}, and no row is left`, async () => {
    const { worker, sql } = await openDelivering({ major })
    const calls = new Map<number, number>()
    const note = ({ payload }: { payload: unknown }) => {
      const { n } = payload as { n: number }
      calls.set(n, (calls.get(n) ?? 0) + 1)
    }
    const workers = await Promise.all([worker(), worker(), worker()])
    for (const one of workers) one.register(work(note))
    await workers[0]!.add(workers[0]!.database, mails(10_000))
    await eventually(() => calls.size === 10_000)
    await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
    expect([...calls.values()].filter((count) => count !== 1)).toEqual([])
  })
}

test('work added in a transaction that rolls back is never done', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const done: unknown[] = []
  one.register(work(({ payload }) => void done.push(payload)))
  await expect(
    one.database.transaction(async (tx) => {
      await one.add(tx, mails(1, { payload: 'never' }))
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  await one.database.transaction((tx) => one.add(tx, mails(1, { payload: 'kept' })))
  await eventually(() => done.length > 0)
  expect(done).toEqual(['kept'])
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
})

test('a failed attempt is tried again, and the last one makes a dead letter with the true number of attempts', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const attempts: number[] = []
  one.register(
    work(async ({ attempt }) => {
      attempts.push(attempt)
      throw new Error('the post is closed')
    }),
  )
  await one.add(one.database, mails(1))
  const letter = await eventually(async () => (await sql.query('select * from aftercommit.letters')).rows[0])
  expect(attempts).toEqual([1, 2, 3])
  expect(letter).toMatchObject({ kind: 'effect', owner: 'shop', attempts: 3, status: 'dead' })
  expect(letter.error).toMatchObject({ message: 'the post is closed' })
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
})

test('GiveUp is a dead letter at once, RetryAfter waits as told', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  let asked = 0
  one.register(work(() => Promise.reject(new GiveUp('no such address'))))
  one.register(work(() => (asked++ === 0 ? Promise.reject(new RetryAfter('1h')) : undefined), { name: 'later' }))
  await one.add(one.database, [...mails(1), ...mails(1, { name: 'later' })])
  const letter = await eventually(async () => (await sql.query('select * from aftercommit.letters')).rows[0])
  expect(letter.attempts).toBe(1)
  const row = await eventually(
    async () =>
      (
        await sql.query(
          `select run_at > now() + interval '50 minutes' as later from aftercommit.deliveries where attempts = 1 and token is null`,
        )
      ).rows[0],
  )
  expect(row.later).toBe(true)
})

test('a redriven dead letter is done again from its first attempt, once, and is then resolved', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const two = await worker()
  const attempts: number[] = []
  let broken = true
  for (const each of [one, two]) {
    each.register(
      work(async ({ attempt }) => {
        attempts.push(attempt)
        if (broken) throw new GiveUp('closed')
      }),
    )
  }
  await one.add(one.database, mails(1))
  await eventually(
    async () => (await sql.query(`select from aftercommit.letters where status = 'dead'`)).rowCount === 1,
  )
  broken = false
  await sql.query(`update aftercommit.letters set status = 'redriving'`)
  one.nudged()
  two.nudged()
  await eventually(
    async () => (await sql.query(`select from aftercommit.letters where status = 'resolved'`)).rowCount === 1,
  )
  expect(attempts).toEqual([1, 1])
})

test('ordered deliveries of a key are done one after the other, and wait behind a failing one', async () => {
  const { worker } = await openDelivering()
  const one = await worker()
  const done: string[] = []
  one.register(
    work(async ({ key, payload, attempt }) => {
      const { n } = payload as { n: number }
      if (key === 'a' && n === 1 && attempt === 1) throw new Error('once')
      done.push(`${key}${n}`)
    }),
  )
  const ordered = ['a', 'b'].flatMap((key) => mails(3, { key, ordered: true }))
  await one.add(one.database, ordered)
  await eventually(() => done.length === 6)
  expect(done.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
  expect(done.filter((name) => name.startsWith('b'))).toEqual(['b1', 'b2', 'b3'])
})

test('while one with a unique key waits, another is not added', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await one.add(one.database, mails(1, { uniqueKey: 'reminder', delayMs: 60_000 }))
  await one.add(one.database, mails(1, { uniqueKey: 'reminder', delayMs: 1 }))
  const { rows } = await sql.query(`select run_at > now() + interval '30 seconds' as later from aftercommit.deliveries`)
  expect(rows).toEqual([{ later: true }])
})

test('names that nobody registered here stay for others', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const done: unknown[] = []
  one.register(work(({ payload }) => void done.push(payload)))
  await one.add(one.database, [...mails(1, { name: 'fax', payload: 'fax' }), ...mails(1, { payload: 'mail' })])
  await eventually(() => done.length === 1)
  const two = await worker()
  two.register(work(({ payload }) => void done.push(payload), { name: 'fax' }))
  await eventually(() => done.length === 2)
  expect(done).toEqual(['mail', 'fax'])
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
})

test('higher priorities are claimed first', async () => {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency: 1 })
  const done: unknown[] = []
  await one.add(one.database, [...mails(3, { priority: -1, payload: 'caught up' }), ...mails(3, { payload: 'live' })])
  one.register(work(async ({ payload }) => void done.push(payload)))
  await eventually(() => done.length === 6)
  expect(done.slice(0, 3)).toEqual(['live', 'live', 'live'])
})

test('a completion in the transaction of the work is one with what it wrote', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  await sql.query('create table results (n integer)')
  let failed = false
  one.register(
    work(async (_, context) => {
      await one.database.transaction(async (tx) => {
        await tx.query('insert into results values (1)')
        await context.complete(tx)
        if (!failed) {
          failed = true
          throw new Error('after completing')
        }
      })
    }),
  )
  await one.add(one.database, mails(1))
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
  expect((await sql.query('select from results')).rowCount).toBe(1)
})

test('a worker whose lease ran out changes nothing when it ends its work', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const two = await worker()
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let [begun, aborted] = [false, false]
  one.register(
    work(async (_, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      begun = true
      await held
    }),
  )
  await one.add(one.database, mails(1))
  await eventually(() => begun)
  // Should it be the first to notice, it would be the one that takes up what it had.
  one.unregister('effect', 'mail')
  await sql.query(`update aftercommit.processes set lease_until = '-infinity' where process = $1`, [one.process])
  const second: number[] = []
  two.register(work(async ({ attempt }) => void second.push(attempt)))
  await eventually(() => second.length === 1)
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
  one.processLease.look()
  await eventually(() => aborted)
  release()
  await one.service.stop()
  expect(one.lines.some((line) => line.includes('claim lost'))).toBe(true)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

test('segments that ran empty are truncated while others are worked on', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  let done = 0
  one.register(work(() => void done++))
  for (let round = 1; round <= 6; round++) {
    await one.add(one.database, mails(1_500))
    await eventually(() => done === round * 1_500)
    await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
    await sql.query('select aftercommit.rotate_deliveries(1000)')
  }
  // One segment of 1,500 rows is about 600 kB; six would be 3.6 MB.
  await eventually(async () => (await emptiedTo(sql)) < 2_000_000)
})
