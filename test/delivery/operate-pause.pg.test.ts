import { expect, test } from 'vitest'
import { hurriedClock } from '../log/support/hurried-clock.ts'
import { eventually } from '../support/eventually.ts'
import { beginLeaseByHand } from './support/by-hand.ts'
import { mails, work } from './support/open-delivering.ts'
import { gate, openOperating } from './support/open-operating.ts'

const MAIL = { kind: 'effect', name: 'mail' } as const

test('once a name is paused no worker begins another call of it, also of what it had claimed', async () => {
  const { deliveries, worker, rows, audit } = await openOperating()
  const held = gate()
  const begun: string[] = []
  const workers = await Promise.all([worker({ concurrency: 1 }), worker({ concurrency: 1 })])
  for (const [n, one] of workers.entries()) {
    one.register(
      work(async ({ payload }) => {
        begun.push(`${n} ${JSON.stringify(payload)}`)
        await held.opened
      }),
    )
    one.register(work(async () => void begun.push('other'), { name: 'other' }))
  }
  await workers[0]!.add(workers[0]!.database, mails(20))
  await eventually(() => begun.length === 2)
  await deliveries.pause(MAIL, { who: 'ada', reason: 'provider is down' })
  held.open()
  await eventually(async () => (await rows('token is not null')) === 0)
  expect(begun).toHaveLength(2)
  expect(await rows()).toBe(18)
  expect(await deliveries.count()).toMatchObject({ paused: 18 })
  expect(await deliveries.pauses()).toMatchObject([{ ...MAIL, who: 'ada', reason: 'provider is down' }])
  await workers[0]!.add(workers[0]!.database, mails(1, { name: 'other' }))
  await eventually(() => begun.includes('other'))

  expect(await deliveries.resume(MAIL, { who: 'ada' })).toEqual([MAIL])
  expect(await deliveries.resume(MAIL, { who: 'ada' })).toEqual([])
  await eventually(async () => (await rows()) === 0)
  expect(begun.filter((each) => each !== 'other')).toHaveLength(20)
  expect(await audit()).toMatchObject([
    { who: 'ada', what: 'delivery.pause', target: 'effect mail', reason: 'provider is down' },
    { who: 'ada', what: 'delivery.resume', target: 'effect mail' },
  ])
})

test('a paused destination is left alone while the same work goes elsewhere', async () => {
  const { deliveries, worker, rows } = await openOperating()
  const one = await worker({ concurrency: 1 })
  const held = gate()
  const sent: string[] = []
  one.register(
    work(async ({ destination }) => {
      sent.push(destination)
      await held.opened
    }),
  )
  await one.add(one.database, mails(4, { destination: 'https://a.example' }))
  await eventually(() => sent.length === 1)
  await deliveries.pause({ destination: 'https://a.example' }, { reason: 'they asked' })
  held.open()
  await one.add(one.database, mails(2, { destination: 'https://b.example' }))
  await eventually(() => sent.filter((each) => each === 'https://b.example').length === 2)
  await eventually(async () => (await rows('token is not null')) === 0)
  expect(sent.filter((each) => each === 'https://a.example')).toHaveLength(1)
  expect(await deliveries.destinations()).toMatchObject([
    { destination: 'https://a.example', paused: true, who: 'unknown', reason: 'they asked', waiting: 3, running: 0 },
  ])
  expect(await deliveries.count()).toMatchObject({ paused: 3 })
  expect(await deliveries.resume({ destination: 'https://a.example' })).toHaveLength(1)
  await eventually(() => sent.length === 6)
  expect(await deliveries.resume({ destination: 'https://a.example' })).toEqual([])
  expect(await deliveries.destinations()).toMatchObject([{ paused: false, who: null, reason: null }])
})

test('a pause that a worker does not confirm says how many have not, and stands', async () => {
  const { deliveries, sql } = await openOperating({ clock: hurriedClock(20) })
  for (const lease of ['silent 1', 'silent 2']) {
    await beginLeaseByHand(sql, lease)
    await sql.query(`insert into aftercommit.delivery_workers (worker, process) values ($1, 'p')`, [lease])
  }
  await expect(deliveries.pause(MAIL)).rejects.toMatchObject({
    code: 'TIMED_OUT',
    message: expect.stringContaining('2 workers have not confirmed it within 10 s'),
  })
  expect(await deliveries.pauses()).toMatchObject([MAIL])
})

test('what is to be paused must be named', async () => {
  const { deliveries, audit } = await openOperating()
  for (const what of [{ destination: '' }, { kind: 'effect', name: '' }] as const) {
    await expect(deliveries.pause(what)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(deliveries.resume(what)).rejects.toMatchObject({ code: 'BAD_OPTION' })
  }
  expect(await audit()).toEqual([])
})

test('work of a paused destination that a dead worker left is not taken up until it is resumed', async () => {
  const { deliveries, worker, sql, rows } = await openOperating()
  const one = await worker()
  const sent: unknown[] = []
  await one.add(one.database, mails(1, { destination: 'https://a.example' }))
  await deliveries.pause({ destination: 'https://a.example' })
  await sql.query(`insert into aftercommit.delivery_workers (worker, process) values ('gone', 'p')`)
  await sql.query(`update aftercommit.deliveries set token = 1, worker = 'gone', attempts = 1, alone = true`)
  one.register(work(({ attempt }) => void sent.push(attempt)))
  one.register(work(() => void sent.push('other'), { name: 'other' }))
  await one.add(one.database, mails(1, { name: 'other' }))
  await eventually(() => sent.length === 1)
  expect(await rows('token = 1 and attempts = 1')).toBe(1)
  await deliveries.resume({ destination: 'https://a.example' })
  await eventually(() => sent.length === 2)
  expect(sent).toEqual(['other', 2])
})

test('resuming a destination ends the rest it asked for and lets an open circuit be probed at once', async () => {
  const { deliveries, worker, sql } = await openOperating()
  const one = await worker()
  const sent: string[] = []
  let broken = true
  one.register(
    work(async ({ destination }) => {
      sent.push(destination)
      if (broken) throw Object.assign(new Error('503'), { transient: true, retryAfterMs: Number.MAX_SAFE_INTEGER })
    }),
  )
  await one.add(one.database, mails(1, { destination: 'https://a.example' }))
  await eventually(async () => (await deliveries.destinations())[0]?.restingUntil ?? undefined)
  await sql.query(
    `update aftercommit.destinations set failures = 5, opened_at = now(), open_until = now() + interval '5 minutes'`,
  )
  const [resting] = await deliveries.destinations()
  expect(resting!.restingUntil!.getTime()).toBeLessThan(Date.now() + 25 * 3_600_000)
  broken = false
  await eventually(async () => (await deliveries.count()).retrying === 1)
  await deliveries.retry({ destination: 'https://a.example' })
  expect(await deliveries.resume({ destination: 'https://a.example' })).toHaveLength(1)
  await eventually(() => sent.length === 2)
  await eventually(async () => (await deliveries.destinations())[0]?.circuit === 'closed')
  expect(await deliveries.resume({ destination: 'https://a.example' })).toEqual([])
})
