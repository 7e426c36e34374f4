import { describe, expect, test } from 'vitest'
import { createReactions } from '../../src/delivery/first-attempts.ts'
import { InFlight } from '../../src/delivery/in-flight.ts'
import type { Reaction, Work } from '../../src/delivery/index.ts'
import type { Lease } from '../../src/delivery/lease.ts'
import type { OutcomeParts } from '../../src/delivery/outcomes.ts'
import { createTestClock, LazySignal } from '../../src/runtime/index.ts'
import { GiveUp, Leftovers } from '../../src/subscriptions/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { lossyDatabase } from './support/lossy-database.ts'
import { never, reacting, reaction } from './support/reacting.ts'

test('what is done at once writes nothing', async () => {
  const { one, sql } = await reacting()
  const { react } = one.reactions()
  const left = new Leftovers()
  let done = 0
  const reactions = [
    reaction(
      () => {},
      () => void done++,
    ),
    reaction(
      () => {},
      () => void done++,
      { name: 'fax' },
    ),
  ]
  expect(react(reactions, left, never)).toBeUndefined()
  await react(
    [
      reaction(
        () => {},
        async () => void done++,
      ),
    ],
    left,
    never,
  )
  expect(done).toBe(3)
  expect(left.isEmpty).toBe(true)
  expect((await sql.query('select from aftercommit.delivery_lanes')).rowCount).toBe(0)
})

test('a failed first attempt becomes a row, and its second attempt counts from there', async () => {
  const { one, reactions, rows } = await reacting()
  const attempts: number[] = []
  const asked = reaction(
    ({ attempt }) => void attempts.push(attempt),
    () => Promise.reject(new Error('closed')),
  )
  one.register(asked.work)
  await reactions.react([asked], never)
  await eventually(() => attempts.length === 1)
  expect(attempts).toEqual([2])
  await eventually(async () => (await rows()) === 0)
})

test('what no attempt can mend becomes a dead letter with the checkpoint that passes its event', async () => {
  const { reactions, sql, rows } = await reacting()
  const asked = reaction(
    () => {},
    () => Promise.reject(new GiveUp('no such address')),
  )
  await reactions.react([asked], never)
  const { rows: letters } = await sql.query('select kind, owner, attempts, status from aftercommit.letters')
  expect(letters).toEqual([{ kind: 'effect', owner: 'shop', attempts: 1, status: 'dead' }])
  expect(await rows()).toBe(0)
})

test('a slow call holds its event, writes nothing, and lets others pass', async () => {
  const clock = createTestClock()
  const { reactions, rows, one } = await reacting(() => ({ clock }))
  const { passed, open } = gate()
  const again: number[] = []
  const asked = reaction(
    ({ attempt }) => void again.push(attempt),
    () => passed,
  )
  one.register(asked.work)
  let isOver = false
  const slow = reactions.react([asked], never).then(() => {
    isOver = true
  })
  await clock.advance(5_000)
  let others = 0
  await reactions.react(
    [
      reaction(
        () => {},
        async () => void others++,
      ),
    ],
    never,
  )
  expect([others, isOver, await rows()]).toEqual([1, false, 0])
  open()
  await slow
  expect([again, await rows()]).toEqual([[], 0])
})

test('the row of a failed action is written while another action of its event is slow, and once', async () => {
  const clock = createTestClock()
  const { reactions, rows } = await reacting(() => ({ clock }))
  const { passed, open } = gate()
  const failing = reaction(
    () => {},
    () => Promise.reject(new Error('busy')),
    { owner: 'failing', name: 'fax' },
  )
  const slow = reaction(
    () => {},
    () => passed,
    { owner: 'slow' },
  )
  const over = reactions.react([failing, slow], never)
  await clock.advance(2_000)
  await eventually(async () => (await rows()) === 1)
  open()
  await over
  expect(await rows()).toBe(1)
})

test('the row of a failed action is written while another action of its event waits for a slow one of its key', async () => {
  const clock = createTestClock()
  const { reactions, rows } = await reacting(() => ({ clock }))
  const { passed, open } = gate()
  const inOrder = () =>
    reaction(
      () => {},
      () => passed,
      { key: 'a', owner: 'in order' },
    )
  const failing = reaction(
    () => {},
    () => Promise.reject(new Error('busy')),
    { owner: 'failing', name: 'fax' },
  )
  const slow = reactions.react([inOrder()], never)
  const waiting = reactions.react([failing, inOrder()], never)
  await clock.advance(2_000)
  await eventually(async () => (await rows()) === 1)
  open()
  await Promise.all([slow, waiting])
  expect(await rows()).toBe(1)
})

test('what goes to a limited destination is left to claims, which keep its limit', async () => {
  const { one, reactions, sql } = await reacting()
  await sql.query(`insert into aftercommit.destinations (destination, concurrency) values ('erp', 1)`)
  one.nudged()
  let running = 0
  let most = 0
  let done = 0
  const later = async () => {
    running++
    most = Math.max(most, running)
    await new Promise(setImmediate)
    running--
    done++
  }
  const hot = { calls: 0 }
  const first = () => void hot.calls++
  const { react } = reactions
  // Until the news of the limit has come, it is done right away.
  await eventually(async () => {
    const before = hot.calls
    await react([reaction(() => {}, first, { destination: 'erp', name: 'probe' })], never)
    return hot.calls === before
  })
  const asked = Array.from({ length: 20 }, () => reaction(later, first, { destination: 'erp' }))
  one.register(asked[0]!.work)
  await react(asked, never)
  await eventually(() => done === 20)
  expect(most).toBe(1)
})

test('events of a key are done in order, and queue behind one that waits', async () => {
  const { one, reactions, rows } = await reacting()
  const done: string[] = []
  const later: Work['run'] = ({ payload }) => void done.push((payload as { name: string }).name)
  const { react } = reactions
  const ask = (name: string, first: Reaction['run']) => reaction(later, first, { key: 'k', payload: () => ({ name }) })
  one.register(ask('', () => {}).work)
  await Promise.all([
    react([ask('1', async () => void done.push('1'))], never),
    react([ask('2', () => Promise.reject(new Error('once')))], never),
    react([ask('3', () => void done.push('3 too early'))], never),
  ])
  await eventually(() => done.length === 3)
  expect(done).toEqual(['1', '2', '3'])
  await eventually(async () => (await rows()) === 0)
})

test('when the subscription ends, nothing is written about what was under way', async () => {
  const { reactions, rows, sql } = await reacting()
  const ending = new LazySignal()
  const seen = new AbortController()
  const asked = reaction(
    () => {},
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          seen.abort()
          reject(signal.reason)
        })
      }),
  )
  const passed = reactions.react([asked], ending)
  ending.abort(new Error('the lease is lost'))
  await expect(passed).rejects.toThrow('the lease is lost')
  expect(seen.signal.aborted).toBe(true)
  expect(await rows()).toBe(0)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

describe.each(['the answer', 'the question'] as const)('a connection that is lost before %s', (after) => {
  test('of the write of a row has the write repeated and no call, and leaves one row', async () => {
    const { one, reactions, rows, sql } = await reacting((url) => ({
      database: lossyDatabase(url, { of: 'save_checkpoint', times: 3, after }),
    }))
    const calls = { first: 0, later: 0 }
    const asked = reaction(
      () => void calls.later++,
      () => {
        calls.first++
        return Promise.reject(new Error('closed'))
      },
    )
    one.register(asked.work)
    await reactions.react([asked], never)
    await eventually(async () => (await rows()) === 0)
    expect(calls).toEqual({ first: 1, later: 1 })
    expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  })
})

test('of one key, the row of an event whose other action is slow is written before the row of the next event', async () => {
  const { one, reactions } = await reacting()
  const done: number[] = []
  const later: Work['run'] = ({ payload }) => void done.push((payload as { n: number }).n)
  const failing = (n: number) =>
    reaction(later, () => Promise.reject(new Error('closed')), { key: 'k', payload: () => ({ n }) })
  one.register(failing(0).work)
  const { passed, open } = gate()
  const slow = reaction(
    () => {},
    () => passed,
    { name: 'fax' },
  )
  const first = reactions.react([failing(1), slow], never)
  let isSecondOver = false
  const second = reactions.react([failing(2)], never).then(() => {
    isSecondOver = true
  })
  // Another key passes meanwhile.
  await reactions.react(
    [
      reaction(
        () => {},
        async () => {},
        { key: 'other' },
      ),
    ],
    never,
  )
  expect(isSecondOver).toBe(false)
  open()
  await Promise.all([first, second])
  await eventually(() => done.length === 2)
  expect(done).toEqual([1, 2])
})

test('calls whose subscription ended before the event loop turned count neither as slow nor as under way', async () => {
  const clock = createTestClock()
  const { one } = await reacting()
  const ending = new LazySignal()
  const reactions = createReactions({
    db: one.database.control,
    clock,
    lease: { isInformed: true, isPaused: () => false } as unknown as Lease,
    outcomes: {
      destinations: { obstacle: () => undefined, recordSuccess() {}, async recordFailure() {} },
      count() {},
    } as unknown as OutcomeParts,
    inFlight: new InFlight({ clock, most: 2 }),
    isAble: () => true,
    onRow() {},
  })
  const endless = reaction(
    () => {},
    () => new Promise(() => {}),
  )
  const ended = reactions.react([endless], new Leftovers(), ending)
  ending.abort(new Error('the lease was lost'))
  await expect(ended).rejects.toThrow('the lease was lost')
  await clock.advance(5_000)
  const next = new Leftovers()
  await reactions.react(
    [
      reaction(
        () => {},
        async () => {},
      ),
    ],
    next,
    never,
  )
  expect(next.rows).toEqual([])
})

test('many events of a key that waited long behind a slow call become rows in order when it ends', async () => {
  const clock = createTestClock()
  const { reactions, rows, sql } = await reacting(() => ({ clock }))
  const { passed, open } = gate()
  let begun = 0
  const first = () => {
    begun++
    return passed
  }
  const asked = Array.from({ length: 70 }, (_, n) =>
    reactions.react([reaction(() => {}, first, { key: 'hot', payload: () => ({ n }) })], never),
  )
  await eventually(() => begun === 1)
  await clock.advance(5_001)
  open()
  await Promise.all(asked)
  expect([begun, await rows()]).toEqual([1, 69])
  const { rows: found } = await sql.query(
    `select (payload ->> 'n')::integer as n from aftercommit.deliveries order by id`,
  )
  expect(found.map(({ n }) => n)).toEqual(Array.from({ length: 69 }, (_, n) => n + 1))
})
