/** A stop ends within its limit, whatever hangs, and a drain tells the truth. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import { mails, openDelivering, openWorker, work } from './support/open-delivering.ts'

const QUICK = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' } as const
const custom = (handler: string) => [{ type: 'custom', name: handler, handler }]

test('calls that hang, and events that wait for a place, do not keep stop() beyond its limit', async () => {
  // Nobody has waited for long, however slow the machine is: what waits for a place goes on waiting.
  const clock = { ...systemClock, monotonic: () => 0 }
  const { ac, emitMany } = await openSubscriptions({ clock, runtime: { maxConcurrency: 2, shutdownTimeout: '300ms' } })
  let begun = 0
  ac.observers.action('hang', () => {
    begun++
    return new Promise(() => {})
  })
  await ac.observers.add({ name: 'hang', on: 'lamp.lit', timeout: '10m', retry: QUICK, actions: custom('hang') })
  await ac.start()
  await emitMany(5)
  // One name may have half of the places.
  await eventually(() => begun === 1)
  await expect(ac.stop()).rejects.toMatchObject({ code: 'TIMED_OUT' })
  expect(begun).toBe(1)
})

test('a handler that hangs and hears no signal is given up at the limit, and its event is handled again', async () => {
  const { ac, another, emitMany } = await openSubscriptions({ runtime: { shutdownTimeout: '300ms' } })
  let begun = 0
  const words = { id: 'slow', on: ['lamp.lit'], timeout: '10m' } as const
  ac.subscribe({
    ...words,
    handle: () => {
      begun++
      return new Promise<void>(() => {})
    },
  })
  await ac.start()
  await emitMany(1)
  await eventually(() => begun === 1)
  await expect(ac.stop()).rejects.toMatchObject({ code: 'TIMED_OUT' })
  const next = another({ runtime: {} })
  const handled: string[] = []
  next.subscribe({ ...words, handle: ({ id }) => void handled.push(id) })
  await next.start()
  await eventually(() => handled.length === 1)
})

test('an instance whose last observer was removed stops at once', async () => {
  const { ac } = await openSubscriptions({ runtime: { shutdownTimeout: '10s' } })
  ac.observers.action('call', () => {})
  await ac.observers.add({ name: 'one', on: 'lamp.lit', actions: custom('call') })
  await ac.observers.remove('one')
  await ac.start()
  await ac.stop()
})

test('nothing goes on after a stop while the database is away', async () => {
  const { url } = await openDelivering()
  const proxy = await createProxy(url)
  const one = await openWorker(proxy.url, { drainMs: () => 300 })
  let end = () => {}
  let begun = false
  one.register(
    work(() => {
      begun = true
      return new Promise<void>((resolve) => {
        end = resolve
      })
    }),
  )
  await one.add(one.database, mails(1))
  await eventually(() => begun)
  proxy.reset()
  end()
  await expect(one.service.stop()).rejects.toThrow('stopped')
  await one.database.close(500)
  const lines = one.lines.length
  // Longer than it waited before it tried again.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(one.lines.slice(lines)).toEqual([])
})

test('drain() works off what waits for a limit before it says that all is done', async () => {
  const { ac, emitMany, sql } = await openSubscriptions()
  let seen = 0
  ac.observers.action('call', () => void seen++)
  await ac.observers.add({ name: 'erp', on: 'lamp.lit', rate: '10/s', retry: QUICK, actions: custom('call') })
  await ac.drain()
  await emitMany(25)
  expect(await ac.drain({ timeout: '60s' })).toMatchObject({ drained: true })
  expect(seen).toBe(25)
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
})

test('drain() does not wait for what stands behind a dead letter', async () => {
  const { ac, sql } = await openSubscriptions()
  ac.observers.action('note', () => {
    throw new Error('never')
  })
  const retry = { ...QUICK, maxAttempts: 1 }
  await ac.observers.add({ name: 'notes', on: 'lamp.lit', orderBy: 'aggregate', retry, actions: custom('note') })
  await ac.drain()
  const aggregate = { type: 'lamp', id: '1' }
  await ac.transaction((tx) => tx.emit([1, 2, 3].map(() => ({ type: 'lamp.lit', aggregate, payload: {} }))))
  expect(await ac.drain({ timeout: '60s' })).toMatchObject({ drained: true })
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(2)
})

test('an ordered row that the database refuses for a moment keeps its place', async () => {
  const { ac, sql } = await openSubscriptions()
  // As while a migration is under way, twice; a sequence goes on although what asked it was rolled back.
  await sql.query(`
    create sequence asked;
    alter function aftercommit.add_deliveries rename to add_asked;
    create function aftercommit.add_deliveries(p_rows jsonb, p_lanes integer[] default null)
    returns table (segment smallint, id bigint) language plpgsql as $$
    begin
      if nextval('public.asked') <= 2 then raise exception 'is not there' using errcode = 'undefined_function'; end if;
      return query select * from aftercommit.add_asked(p_rows, p_lanes);
    end
    $$`)
  const done: string[] = []
  let isFirst = true
  ac.observers.action('note', async ({ id }) => {
    if (id === 'e0' && isFirst) {
      isFirst = false
      throw new Error('busy')
    }
    done.push(id)
  })
  const retry = { maxAttempts: 5, initialDelay: '50ms', maxDelay: '50ms' }
  await ac.observers.add({ name: 'notes', on: 'lamp.lit', orderBy: 'aggregate', retry, actions: custom('note') })
  await ac.start()
  const ids = [0, 1, 2, 3, 4, 5].map((n) => `e${n}`)
  const aggregate = { type: 'lamp', id: '1' }
  await ac.transaction((tx) => tx.emit(ids.map((id) => ({ type: 'lamp.lit', id, aggregate, payload: {} }))))
  await eventually(() => done.length === 6)
  expect(done).toEqual(ids)
  expect(Number((await sql.query('select last_value from asked')).rows[0].last_value)).toBeGreaterThan(2)
})
