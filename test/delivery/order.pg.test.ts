/** Order goes by kind, name and key, whatever lanes the rows are in. */
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { claimByHand as claim, pagesOfClaim } from './support/by-hand.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

const ORDERED = { key: 'a', ordered: true }

describe.each([18, 14] as const)('on Postgres %i', (major) => {
  test('what goes to another destination, or is of another tenant or priority, waits for those before it', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    const lanes = [{ destination: 'x' }, { destination: 'y' }, { tenant: 't' }, { priority: 1 }, { destination: 'x' }]
    await one.add(
      one.database,
      lanes.flatMap((lane, n) => mails(1, { ...ORDERED, ...lane, payload: { n } })),
    )
    for (const n of lanes.keys()) {
      expect(await claim(sql, 50)).toEqual([n])
      expect(await claim(sql, 50)).toEqual([])
      await sql.query('delete from aftercommit.deliveries where token is not null')
    }
  })

  test('a retry that is due later holds back what was to go elsewhere', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, [
      ...mails(1, { ...ORDERED, destination: 'old', delayMs: 3_600_000 }),
      ...mails(1, { ...ORDERED, destination: 'new', payload: { n: 2 } }),
    ])
    expect(await claim(sql, 50)).toEqual([])
    await sql.query(`update aftercommit.deliveries set run_at = now() where segment = 0`)
    expect(await claim(sql, 50)).toEqual([1])
  })

  test('another name, another kind and another key wait for nothing', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, [
      ...mails(1, { ...ORDERED, name: 'fax', destination: 'x', delayMs: 3_600_000 }),
      ...mails(1, { ...ORDERED, kind: 'action', destination: 'x', delayMs: 3_600_000 }),
      ...mails(1, { ...ORDERED, destination: 'x', key: 'b', delayMs: 3_600_000 }),
      ...mails(1, { ...ORDERED, destination: 'y', payload: { n: 4 } }),
    ])
    expect(await claim(sql, 50)).toEqual([4])
  })

  test('what has no key waits for nothing, whatever was said of its order', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, mails(3, { ordered: true }))
    expect((await claim(sql, 50)).sort()).toEqual([1, 2, 3])
  })

  test('100,000 rows of the same key of another name change nothing about what a claim looks at', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, [
      ...mails(1, { ...ORDERED, name: 'fax', delayMs: 3_600_000 }),
      ...mails(50).map((mail, n) => ({ ...mail, key: `key ${n}`, ordered: true, destination: 'x' })),
      ...mails(1, { ...ORDERED, name: 'telex', delayMs: 3_600_000 }),
      ...mails(1, { ...ORDERED, destination: 'y' }),
    ])
    const before = await pagesOfClaim(sql)
    await sql.query(
      `insert into aftercommit.deliveries (segment, id, lane, owner, payload, key, ordered)
       select 0, nextval('aftercommit.delivery_ids'), lane, 'shop', '{}', 'key ' || n % 50, true
         from aftercommit.delivery_lanes, generate_series(1, 100000) n
        where name in ('fax', 'telex')`,
    )
    await sql.query('vacuum analyze aftercommit.deliveries')
    // Deeper indexes, and a step over each of the two lanes.
    expect(await pagesOfClaim(sql)).toBeLessThan(before * 3)
  })

  test('a plan that was made when there was nothing looks at no more of 100,000 rows than one that knows of them', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    const words = { ordered: true, destination: 'x' }
    await one.add(one.database, [
      ...mails(1, words),
      ...mails(20).map((mail, n) => ({ ...mail, ...words, key: `key ${n}` })),
    ])
    const before = await pagesOfClaim(sql)
    await sql.query(
      `insert into aftercommit.deliveries (segment, id, lane, owner, payload, key, ordered, run_at)
       select n % 5, nextval('aftercommit.delivery_ids'), lane, 'shop', '{}', 'key ' || n % 1000, n % 2 = 0, now() + interval '1 day'
         from aftercommit.delivery_lanes, generate_series(1, 100000) n`,
    )
    expect(await pagesOfClaim(sql)).toBeLessThan(before * 4)
  })

  test('with a lane for each of 1,000 destinations a claim looks at what is due, and not at every pair of lanes', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    const pages: number[] = []
    for (const many of [100, 900]) {
      const added = Array.from({ length: many }, (_, n) => ({ destination: `${many}-${n}`, key: `${many}-${n}` }))
      await one.add(
        one.database,
        added.flatMap((words) => mails(1, { ...words, ordered: true })),
      )
      pages.push(await pagesOfClaim(sql))
    }
    // Ten times as many lanes, of which a look sees 500.
    expect(pages[1]).toBeLessThan(pages[0]! * 15)
  })
})

test('ordered work of an instance is done one after the other although its parts go to several destinations', async () => {
  const { worker } = await openDelivering()
  const [one, two] = [await worker(), await worker()]
  const done: number[] = []
  let running = 0
  let most = 0
  const run = async ({ payload }: { payload: unknown }) => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    done.push((payload as { n: number }).n)
  }
  await one.add(
    one.database,
    Array.from({ length: 12 }, (_, n) => mails(1, { ...ORDERED, destination: `to ${n % 3}`, payload: { n } })).flat(),
  )
  one.register(work(run))
  two.register(work(run))
  await eventually(() => done.length === 12)
  expect(done).toEqual([...done.keys()])
  expect(most).toBe(1)
})
