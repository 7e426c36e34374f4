import { expect, test } from 'vitest'
import type { Reaction, Work } from '../../src/delivery/index.ts'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { type OpenWorker, openDelivering, work } from './support/open-delivering.ts'

/** What an event asks for: `first` is the attempt from the window, `later` those from a row. */
function reaction(
  later: Work['run'],
  first: Reaction['run'],
  words: Partial<Reaction> & { name?: string; timeoutMs?: number } = {},
): Reaction {
  const { name = 'mail', timeoutMs = 30_000, ...rest } = words
  return {
    work: work(later, { name, timeoutMs }),
    owner: 'shop',
    destination: '',
    tenant: '',
    key: null,
    priority: 0,
    run: first,
    payload: () => ({ n: 1 }),
    ...rest,
  }
}

const never = () => new AbortController().signal

async function reacting(): Promise<{ one: OpenWorker; rows: () => Promise<number>; sql: import('pg').Client }> {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  // A lease is needed to claim what is slow.
  one.register(work(() => {}, { name: 'warm-up' }))
  await one.reactions().begin()
  const rows = async () => (await sql.query('select from aftercommit.deliveries')).rowCount ?? 0
  return { one, rows, sql }
}

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
