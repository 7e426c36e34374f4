import { describe, expect, test } from 'vitest'
import type { Reaction, Work } from '../../src/delivery/index.ts'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { lossyDatabase } from './support/lossy-database.ts'
import { mails, work } from './support/open-delivering.ts'
import { never, reacting, reaction } from './support/reacting.ts'

test('what is done at once writes nothing', async () => {
  const { one, sql } = await reacting()
  const { react } = one.reactions()
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
  expect(react(reactions, never)).toBeUndefined()
  await react(
    [
      reaction(
        () => {},
        async () => void done++,
      ),
    ],
    never,
  )
  expect(done).toBe(3)
  expect((await sql.query('select from aftercommit.delivery_lanes')).rowCount).toBe(0)
})

test('a failed first attempt becomes a row, and its second attempt counts from there', async () => {
  const { one, rows } = await reacting()
  const attempts: number[] = []
  const asked = reaction(
    ({ attempt }) => void attempts.push(attempt),
    () => Promise.reject(new Error('closed')),
  )
  one.register(asked.work)
  await one.reactions().react([asked], never)
  await eventually(() => attempts.length === 1)
  expect(attempts).toEqual([2])
  await eventually(async () => (await rows()) === 0)
})

test('what no attempt can mend becomes a dead letter before the event is passed', async () => {
  const { one, sql, rows } = await reacting()
  const asked = reaction(
    () => {},
    () => Promise.reject(new GiveUp('no such address')),
  )
  await one.reactions().react([asked], never)
  const { rows: letters } = await sql.query('select kind, owner, attempts, status from aftercommit.letters')
  expect(letters).toEqual([{ kind: 'effect', owner: 'shop', attempts: 1, status: 'dead' }])
  expect(await rows()).toBe(0)
})

test('a slow call no longer holds its event: a claimed row stands for it until it has ended', async () => {
  const { one, sql, rows } = await reacting()
  let end = () => {}
  const slow = new Promise<void>((resolve) => {
    end = resolve
  })
  const again: number[] = []
  const asked = reaction(
    ({ attempt }) => void again.push(attempt),
    () => slow,
  )
  one.register(asked.work)
  await one.reactions().react([asked], never)
  const { rows: claimed } = await sql.query('select attempts, token is not null as claimed from aftercommit.deliveries')
  expect(claimed).toEqual([{ attempts: 1, claimed: true }])
  end()
  await eventually(async () => (await rows()) === 0)
  expect(again).toEqual([])
})

test('what goes to a limited destination is left to claims, which keep its limit', async () => {
  const { one, sql } = await reacting()
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
  const { react } = one.reactions()
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
  const { one, rows } = await reacting()
  const done: string[] = []
  const later: Work['run'] = ({ payload }) => void done.push((payload as { name: string }).name)
  const { react, begin } = one.reactions()
  await begin()
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
  const { one, rows, sql } = await reacting()
  const ending = new AbortController()
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
  const passed = one.reactions().react([asked], () => ending.signal)
  ending.abort(new Error('the lease is lost'))
  await expect(passed).rejects.toThrow('the lease is lost')
  expect(seen.signal.aborted).toBe(true)
  expect(await rows()).toBe(0)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

describe.each(['the answer', 'the question'] as const)('a connection that is lost before %s', (after) => {
  test('of the row of a slow call has nobody else begin it while it goes on, and holds its event', async () => {
    const { one, sql, rows } = await reacting((url) => ({
      database: lossyDatabase(url, { of: 'add_deliveries', times: 1, after }),
    }))
    const { passed, open } = gate()
    const begun: string[] = []
    const asked = reaction(
      () => void begun.push('from a row'),
      () => {
        begun.push('from the window')
        return passed
      },
    )
    one.register(asked.work)
    await one.reactions().react([asked], never)
    expect(await rows('token is not null')).toBe(after === 'the answer' ? 2 : 1)
    // The worker looks for what it could begin, and finds nothing of it.
    let looked = 0
    one.register(work(() => void looked++, { name: 'look' }))
    for (let n = 1; n <= 3; n++) {
      await one.add(one.database, mails(1, { name: 'look' }))
      await eventually(() => looked === n)
    }
    expect(begun).toEqual(['from the window'])
    open()
    await eventually(async () => (await rows()) === 0)
    // What may have been written is done at least once.
    expect(begun.slice(1)).toEqual(after === 'the answer' ? ['from a row'] : [])
    expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  })
})

test('a slow call whose row is never written holds its event, and is done when it ends', async () => {
  const database = (url: string) => lossyDatabase(url, { of: 'add_deliveries', times: 1_000, after: 'the question' })
  let lossy: ReturnType<typeof database> | undefined
  const { one, rows } = await reacting((url) => {
    lossy = database(url)
    return { database: lossy }
  })
  const { passed, open } = gate()
  const ends: string[] = []
  const asked = reaction(
    () => {},
    () => passed,
    { onEnd: ({ outcome }) => void ends.push(outcome) },
  )
  const over = one.reactions().react([asked], never)
  await eventually(() => lossy!.lost >= 2)
  open()
  await over
  expect(ends).toEqual(['success'])
  expect(await rows()).toBe(0)
})

test('a stop waits until what a slow call led to is written', async () => {
  const { one, rows } = await reacting()
  let [answer, conclude] = [() => {}, () => {}]
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const concluded = new Promise<void>((resolve) => {
    conclude = resolve
  })
  let isConcluding = false
  const asked = reaction(
    () => {},
    () => answered,
    {
      async conclude() {
        isConcluding = true
        await concluded
      },
    },
  )
  await one.reactions().react([asked], never)
  expect(await rows('token is not null')).toBe(1)
  const stopped = one.service.stop()
  answer()
  await eventually(() => isConcluding)
  let isStopped = false
  void stopped.then(() => {
    isStopped = true
  })
  // As long as a stop without anything to wait for takes, and longer.
  for (let n = 0; n < 50; n++) await rows()
  expect(isStopped).toBe(false)
  conclude()
  await stopped
  expect(await rows()).toBe(0)
})
