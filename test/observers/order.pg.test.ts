/** `order_by`: whatever the value, and however an event was come by. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { type Clock, systemClock } from '../../src/runtime/index.ts'
import { gate, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'

const QUICK = { maxAttempts: 4, initialDelay: '10ms', maxDelay: '20ms' } as const
const custom = (handler: string) => [{ type: 'custom', name: handler, handler }]

/** An observer that does not get event `a` done before its third attempt; what it got done, in order. */
async function addNotes(ac: Pick<Aftercommit, 'observers'>, orderBy: string): Promise<string[]> {
  const done: string[] = []
  ac.observers.action('note', (event, { attempt }) => {
    if (event.id === 'a' && attempt < 3) throw new Error('busy')
    done.push(event.id)
  })
  await ac.observers.add({ name: 'notes', on: 'lamp.lit', orderBy, retry: QUICK, actions: custom('note') })
  return done
}

test('order holds between events that were caught up on and new ones', async () => {
  const { ac, emit, sql, another } = await openSubscriptions()
  await addNotes(ac, 'aggregate')
  await ac.start()
  // Only what has begun can be paused for certain.
  await eventually(async () => (await ac.subscriptions.get('observers').status()).owner !== null)
  await ac.subscriptions.get('observers').pause()
  await emit('a', { key: 'k' })
  // A night without a process.
  await sql.query(`update aftercommit.events set recorded_at = recorded_at - interval '1 day'`)
  await emit('b', { key: 'k' })
  await ac.stop()
  const next = another()
  const done = await addNotes(next, 'aggregate')
  await next.start()
  await next.subscriptions.get('observers').resume()
  await eventually(() => done.length === 2)
  expect(done).toEqual(['a', 'b'])
})

test('an event that waits half an hour for a slow one of its key is neither given up nor done twice', async () => {
  const late = new Set<() => void>()
  const clock: Clock = {
    ...systemClock,
    setTimer(ms, callback) {
      if (ms < 11 * 60_000 || ms > 30 * 60_000) return systemClock.setTimer(ms, callback)
      late.add(callback)
      return () => void late.delete(callback)
    },
  }
  const { ac, emit } = await openSubscriptions({ clock })
  const { passed, open } = gate()
  const begun: string[] = []
  const done: string[] = []
  ac.observers.action('note', async (event) => {
    begun.push(event.id)
    if (event.id === 'a') await passed
    done.push(event.id)
  })
  ac.observers.action('seen', async (event) => void begun.push(`seen ${event.id}`))
  await ac.observers.add({ name: 'notes', on: 'lamp.lit', orderBy: 'aggregate', actions: custom('note') })
  await ac.observers.add({ name: 'witness', on: 'lamp.lit', actions: custom('seen') })
  await ac.start()
  await emit('a', { key: 'k' })
  await eventually(() => begun.includes('a'))
  // Only the time of the event that waits is up.
  late.clear()
  await emit('b', { key: 'k' })
  await eventually(() => begun.includes('seen b'))
  for (const callback of late) callback()
  open()
  await eventually(() => done.includes('b'))
  expect(done).toEqual(['a', 'b'])
  expect(begun.sort()).toEqual(['a', 'b', 'seen a', 'seen b'])
})

test('order holds over tenants that share a value', async () => {
  const { ac, emit } = await openSubscriptions()
  const done = await addNotes(ac, 'payload.account')
  await ac.start()
  await emit('a', { tenant: 'x', payload: { account: 1 } })
  await emit('b', { tenant: 'y', payload: { account: 1 } })
  await eventually(() => done.length === 2)
  expect(done).toEqual(['a', 'b'])
})

test('an expression that cannot be evaluated is a dead letter of its observer, and others act once', async () => {
  const { ac, emit } = await openSubscriptions()
  const seen: string[] = []
  ac.observers.action('call', (event, { observer }) => void seen.push(`${observer} ${event.id}`))
  await ac.observers.add({ name: 'good', on: 'lamp.lit', retry: QUICK, actions: custom('call') })
  const orderBy = 'payload.account + 1'
  await ac.observers.add({ name: 'picky', on: 'lamp.lit', orderBy, retry: QUICK, actions: custom('call') })
  await ac.start()
  // More of them in a row than a subscription bears before it calls itself failing.
  const ids = [1, 2, 3, 4, 5, 6].map((n) => `e${n}`)
  for (const id of ids) await emit(id)
  await emit('fine', { payload: { account: 1 } })
  await eventually(() => seen.includes('picky fine'))
  await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === ids.length)
  expect(seen.sort()).toEqual([...ids, 'fine'].map((id) => `good ${id}`).concat('picky fine'))
  const letters = await ac.deadLetters.list()
  expect(new Set(letters.map(({ kind, owner }) => `${kind} ${owner}`))).toEqual(new Set(['action picky/call']))
  expect(await ac.subscriptions.get('observers').status()).toMatchObject({ status: 'active' })
})

test('while the database refuses the rows of an event no action is called again, and then each row is there once', async () => {
  const { logger, lines } = collectingLogger()
  const { ac, emit, url } = await openSubscriptions({ logger })
  const admin = await connect(url)
  const calls: string[] = []
  ac.observers.action('call', async (_, { observer }) => {
    calls.push(observer)
    throw new Error('busy')
  })
  const retry = { initialDelay: '1h', maxDelay: '1h' }
  await ac.observers.add({ name: 'a', on: 'lamp.lit', retry, actions: custom('call') })
  await ac.observers.add({ name: 'b', on: 'lamp.lit', retry, orderBy: 'aggregate', actions: custom('call') })
  await ac.start()
  await admin.query('alter function aftercommit.add_deliveries rename to away')
  await emit('x', { key: '1' })
  await eventually(() => lines.filter((line) => line.includes('checkpoint not written')).length >= 3)
  await admin.query('alter function aftercommit.away rename to add_deliveries')
  await eventually(async () => (await ac.deliveries.list()).length > 0)
  expect((await ac.deliveries.list()).map(({ name }) => name).sort()).toEqual(['a/call', 'b/call'])
  expect(calls.sort()).toEqual(['a', 'b'])
})

test('a long value costs neither its event nor other observers', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const seen: string[] = []
  ac.observers.action('call', (event, { attempt, observer }) => {
    seen.push(`${observer} ${event.id} ${attempt}`)
    if (attempt === 1 && observer === 'long') throw new Error('busy')
  })
  await ac.observers.add({ name: 'good', on: 'lamp.lit', retry: QUICK, actions: custom('call') })
  await ac.observers.add({ name: 'long', on: 'lamp.lit', orderBy: 'note', retry: QUICK, actions: custom('call') })
  await ac.start()
  // Longer than what fits into an index, and not to be compressed.
  await emit('a', { payload: { note: randomBytes(6_000).toString('base64') } })
  await eventually(() => seen.length === 3)
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
  expect(seen.sort()).toEqual(['good a 1', 'long a 1', 'long a 2'])
  expect(await ac.deadLetters.count({})).toBe(0)
})
