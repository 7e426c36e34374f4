import { expect, test } from 'vitest'
import { removeDeliveries } from '../../src/delivery/operate-statements.ts'
import { completeDeliveries } from '../../src/delivery/statements.ts'
import { parseRetry } from '../../src/runtime/index.ts'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { beginLeaseByHand } from './support/by-hand.ts'
import { mails, work } from './support/open-delivering.ts'
import { gate, openOperating } from './support/open-operating.ts'

test('deliveries are listed by state, oldest first and page by page', async () => {
  const { deliveries, worker } = await openOperating()
  const one = await worker()
  const held = gate()
  one.register(work(() => held.opened))
  one.register(work(() => Promise.reject(new Error('closed')), { name: 'fails', retry: patient }))
  await deliveries.pause({ kind: 'effect', name: 'fax' })
  const [running] = await one.add(one.database, mails(1, { destination: 'smtp', key: 'a', tenant: 'acme' }))
  const [retrying] = await one.add(one.database, mails(1, { name: 'fails' }))
  const [paused] = await one.add(one.database, mails(1, { name: 'fax' }))
  const [scheduled] = await one.add(one.database, mails(1, { delayMs: 60_000 }))
  const [waiting, last] = await one.add(one.database, mails(2, { name: 'nobody', owner: 'other' }))
  const states = async () => Object.fromEntries((await deliveries.list()).map(({ id, state }) => [String(id), state]))
  const expected = {
    [String(running)]: 'running',
    [String(retrying)]: 'retrying',
    [String(paused)]: 'paused',
    [String(scheduled)]: 'scheduled',
    [String(waiting)]: 'waiting',
    [String(last)]: 'waiting',
  }
  await eventually(async () => expect(await states()).toEqual(expected))

  const ids = async (filter: object) => (await deliveries.list(filter)).map(({ id }) => id)
  expect(await ids({ limit: 2 })).toEqual([running, retrying])
  expect(await ids({ limit: 2, after: retrying })).toEqual([paused, scheduled])
  expect(await ids({ before: retrying })).toEqual([running])
  expect(await ids({ destination: 'smtp' })).toEqual([running])
  expect(await ids({ owner: 'other' })).toEqual([waiting, last])
  expect(await ids({ kind: 'timer' })).toEqual([])
  for (const state of ['running', 'retrying', 'paused', 'scheduled'] as const) {
    const found = await deliveries.list({ state })
    expect(found.map((each) => each.state)).toEqual([state])
  }
  expect(await ids({ state: 'waiting', name: 'nobody' })).toEqual([waiting, last])
  expect(await deliveries.count()).toEqual({ waiting: 2, running: 1, scheduled: 1, retrying: 1, paused: 1 })
  expect(await deliveries.count({ owner: 'other' })).toMatchObject({ waiting: 2, running: 0 })
  expect((await deliveries.list({ state: 'running' }))[0]).toMatchObject({
    destination: 'smtp',
    tenant: 'acme',
    key: 'a',
    process: one.process,
    attempts: 1,
    error: null,
  })
  expect((await deliveries.list({ state: 'retrying' }))[0]).toMatchObject({
    error: { message: 'closed' },
    process: null,
    destination: null,
  })
  await expect(deliveries.list({ limit: 1_001 })).rejects.toThrow('1 to 1000')
  held.open()
})

test('what a worker that is gone had claimed is not shown as running', async () => {
  const { deliveries, worker, sql } = await openOperating()
  const one = await worker()
  await one.add(one.database, mails(1))
  await sql.query(`update aftercommit.deliveries set token = 1, worker = 'gone', attempts = 1`)
  expect(await deliveries.count()).toEqual({ waiting: 0, running: 0, scheduled: 0, retrying: 1, paused: 0 })
  await beginLeaseByHand(sql, 'gone')
  expect(await deliveries.count()).toMatchObject({ running: 1, retrying: 0 })
})

test('one delivery is shown with its payload, and one that does not exist is not', async () => {
  const { deliveries, worker } = await openOperating()
  const one = await worker()
  const [id = 0n] = await one.add(
    one.database,
    mails(1, { payload: { to: 'ada', n: 9007199254740993n }, uniqueKey: 'u' }),
  )
  expect(await deliveries.show(id)).toMatchObject({
    id,
    name: 'mail',
    uniqueKey: 'u',
    ordered: false,
    state: 'waiting',
  })
  expect((await deliveries.show(id))?.payload).toEqual({ to: 'ada', n: 9007199254740993n })
  expect(await deliveries.show(id + 1n)).toBeUndefined()
})

test('a retry makes due what waits for later, and leaves alone what is running or due', async () => {
  const { deliveries, worker, audit } = await openOperating()
  const one = await worker()
  const held = gate()
  const done: unknown[] = []
  one.register(
    work(
      async ({ payload, attempt }) => {
        if (payload === 'held') return held.opened
        if (payload === 'fails' && attempt === 1) throw new Error('closed')
        done.push(payload)
      },
      { retry: patient },
    ),
  )
  const [running] = await one.add(one.database, mails(1, { payload: 'held' }))
  const [retrying] = await one.add(one.database, mails(1, { payload: 'fails' }))
  const [scheduled] = await one.add(one.database, mails(1, { payload: 'later', delayMs: 3_600_000 }))
  await one.add(one.database, mails(1, { payload: 'unknown', name: 'nobody' }))
  await eventually(async () =>
    expect(await deliveries.count()).toEqual({ waiting: 1, running: 1, scheduled: 1, retrying: 1, paused: 0 }),
  )
  expect(await deliveries.retry(running!)).toBe(0)
  expect(await deliveries.retry([running!, scheduled!], { who: 'ada', reason: 'now please' })).toBe(1)
  await eventually(() => done.length === 1)
  expect(await deliveries.retry({ state: 'retrying' })).toBe(1)
  await eventually(() => done.length === 2)
  expect(done).toEqual(['later', 'fails'])
  expect((await deliveries.show(running!))?.attempts).toBe(1)
  expect(await deliveries.retry({})).toBe(0)
  expect(await audit()).toEqual([
    {
      who: 'ada',
      what: 'delivery.retry',
      target: 'effect mail',
      after: { count: 1, first: String(scheduled) },
      reason: 'now please',
    },
    {
      who: 'unknown',
      what: 'delivery.retry',
      target: 'effect mail',
      after: { count: 1, first: String(retrying) },
      reason: null,
    },
  ])
  held.open()
})

test('a cancelled delivery is never done; one under way is told so and its end changes nothing', async () => {
  const { deliveries, worker, rows, sql, audit } = await openOperating()
  const one = await worker()
  const reasons: unknown[] = []
  const ends = [gate(), gate()]
  let begun = 0
  const done: unknown[] = []
  one.register(
    work(async ({ payload }, { signal }) => {
      if (typeof payload !== 'number') return void done.push(payload)
      signal.addEventListener('abort', () => reasons.push(signal.reason.code))
      begun++
      await ends[payload]!.opened
      if (payload === 1) throw new Error('fails after it was cancelled')
    }),
  )
  const first = await one.add(one.database, mails(1, { payload: 0 }))
  const second = await one.add(one.database, mails(1, { payload: 1 }))
  const later = await one.add(one.database, mails(1, { payload: 'never', delayMs: 60_000 }))
  await eventually(() => begun === 2)
  expect(await deliveries.cancel([...first, ...second], { who: 'ada', reason: 'wrong address' })).toBe(2)
  await eventually(() => reasons.length === 2)
  expect(reasons).toEqual(['CLAIM_LOST', 'CLAIM_LOST'])
  for (const end of ends) end.open()
  expect(await deliveries.cancel(later[0]!)).toBe(1)
  expect(await deliveries.cancel(later[0]!)).toBe(0)
  await one.add(one.database, mails(1, { payload: 'kept' }))
  await eventually(() => done.length === 1)
  await eventually(async () => (await rows()) === 0)
  await one.service.stop()
  expect(done).toEqual(['kept'])
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  expect(one.lines.filter((line) => line.includes('claim lost'))).toHaveLength(1)
  expect(await audit()).toMatchObject([
    { who: 'ada', what: 'delivery.cancel', target: 'effect mail', after: { count: 2 }, reason: 'wrong address' },
    { who: 'unknown', what: 'delivery.cancel', after: { count: 1 } },
  ])
})

test('what was claimed and not begun is not begun once it is cancelled, and work that completed by itself is not aborted', async () => {
  const { deliveries, worker, rows } = await openOperating()
  const one = await worker({ concurrency: 1 })
  const held = gate()
  const completed = gate()
  const begun: unknown[] = []
  let aborted = false
  one.register(
    work(async ({ payload }, context) => {
      begun.push(payload)
      if (payload !== 'completes') return
      context.signal.addEventListener('abort', () => {
        aborted = true
      })
      await one.database.transaction((tx) => context.complete(tx))
      completed.open()
      await held.opened
    }),
  )
  await one.add(one.database, [...mails(1, { payload: 'completes', priority: 1 }), ...mails(3, { payload: 'behind' })])
  await completed.opened
  // Its end is in the database, and the work is still busy with something else.
  expect(await deliveries.cancel({ name: 'mail' })).toBe(3)
  await eventually(async () => (await deliveries.count()).running === 0 && (await rows()) === 0)
  await deliveries.pause({ kind: 'effect', name: 'mail' })
  held.open()
  await one.service.stop()
  expect({ begun, aborted }).toEqual({ begun: ['completes'], aborted: false })
})

test('a delivery whose attempt fails at the moment it is cancelled is cancelled all the same', async () => {
  const { deliveries, sql, url, worker, rows } = await openOperating()
  const one = await worker()
  const watcher = await connect(url)
  const [id = 0n] = await one.add(one.database, mails(1))
  // What a failed attempt does: the row leaves its segment for the one that does not rotate.
  await sql.query('begin')
  await sql.query(
    `with moved as (delete from aftercommit.deliveries where id = $1 returning *)
     insert into aftercommit.deliveries (segment, id, lane, owner, payload, attempts)
     select 0, id, lane, owner, payload, 1 from moved`,
    [String(id)],
  )
  const cancelled = deliveries.cancel(id)
  await eventually(async () => {
    const { rowCount } = await watcher.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%as tells%'`,
    )
    return rowCount === 1
  })
  await sql.query('commit')
  expect(await cancelled).toBe(1)
  expect(await rows()).toBe(0)
})

test('cancelling what was made from a dead letter gives the letter up too', async () => {
  const { deliveries, sql, worker, rows } = await openOperating()
  const one = await worker()
  one.register(work(() => Promise.reject(new GiveUp('no such address'))))
  await one.add(one.database, mails(1))
  await eventually(async () => (await sql.query('select from aftercommit.letters')).rowCount === 1)
  await deliveries.pause({ kind: 'effect', name: 'mail' })
  await sql.query(`update aftercommit.letters set status = 'redriving'`)
  one.nudged()
  await eventually(async () => (await rows('letter is not null')) === 1)
  expect(await deliveries.cancel({ name: 'mail' }, { who: 'ada' })).toBe(1)
  const { rows: letters } = await sql.query('select status, who, reason from aftercommit.letters')
  expect(letters).toEqual([{ status: 'discarded', who: 'ada', reason: 'its delivery was cancelled' }])
})

const patient = parseRetry({ maxAttempts: 3, initialDelay: '1h', maxDelay: '1h' })

test('a claim that ends while its effect is cancelled finds no row instead of failing', async () => {
  const { sql, url, worker, rows } = await openOperating()
  const one = await worker()
  const watcher = await connect(url)
  const [id = 0n] = await one.add(one.database, [{ ...mails(1)[0]!, key: '1', payload: { generation: 1 } }])
  const { rows: claimed } = await sql.query(
    `update aftercommit.deliveries set token = 7, worker = 'w' where id = $1 returning segment`,
    [String(id)],
  )
  const claim = { id, segment: claimed[0].segment as number, token: 7n }
  expect(claim.segment).toBeGreaterThan(0)
  let ended: Promise<Set<bigint>> | undefined
  await one.database.transaction(async (tx) => {
    const removed = await removeDeliveries(tx, [id], { who: 'me', reason: 'no use' })
    expect(removed.ids).toEqual([id])
    ended = completeDeliveries(one.database.control, [claim])
    await eventually(async () => {
      const { rowCount } = await watcher.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%done_0%'`,
      )
      return rowCount === 1
    })
  })
  expect(await ended).toEqual(new Set())
  expect(await rows()).toBe(1)
})
