/** What a process that starts knows from its first event on. */
import { execFileSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'

beforeAll(buildPackage)

const rule = { name: 'erp', on: 'lamp.lit', actions: [{ type: 'custom', name: 'call', handler: 'call' }] }

test('a second start() after one that failed has the observers in force', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const seen: string[] = []
  ac.observers.action('call', (event) => void seen.push(event.id))
  await ac.observers.add(rule)
  await sql.query('alter table aftercommit.observer_actions rename to away')
  await expect(ac.start()).rejects.toThrow('observer_actions')
  await sql.query('alter table aftercommit.away rename to observer_actions')
  await ac.start()
  await emit('a')
  await eventually(() => seen.length === 1)
})

test('a limit holds from the first event that a new process reads', async () => {
  const { ac, another, emitMany } = await openSubscriptions()
  ac.observers.action('call', () => {})
  await ac.observers.add({ ...rule, concurrency: 1 })
  await ac.start()
  await ac.stop()
  await emitMany(10)
  const next = another()
  let running = 0
  const calls: number[] = []
  next.observers.action('call', async () => {
    calls.push(++running)
    await new Promise((resolve) => setTimeout(resolve, 5))
    running--
  })
  await next.observers.add({ ...rule, concurrency: 1 })
  await next.start()
  await eventually(() => calls.length === 10)
  expect(Math.max(...calls)).toBe(1)
})

test('a paused action is not begun by a process that starts', async () => {
  const { ac, another, emit } = await openSubscriptions()
  const setUp = async (one: Pick<Aftercommit, 'observers'>) => {
    const seen: string[] = []
    one.observers.action('call', (event) => void seen.push(event.id))
    await one.observers.add(rule)
    return seen
  }
  await setUp(ac)
  await ac.start()
  await ac.deliveries.pause({ kind: 'action', name: 'erp/call' }, { who: 'ada' })
  await emit('a')
  await ac.stop()
  const next = another()
  const seen = await setUp(next)
  await next.transaction((tx) => tx.emit('lamp.lit', { id: 'b', payload: {} }))
  await next.start()
  await eventually(async () => (await next.deliveries.list()).length === 2)
  expect(seen).toEqual([])
  await next.deliveries.resume({ kind: 'action', name: 'erp/call' }, { who: 'ada' })
  await eventually(() => seen.length === 2)
})

test('an error that no database can store costs no record', async () => {
  const { ac, sql, emitMany } = await openSubscriptions()
  ac.observers.action('call', async (event) => {
    await new Promise(setImmediate)
    if (event.id === 'event-3') throw new Error(`answered \u0000 nothing, and half of \ud83d`)
  })
  await ac.observers.add({ ...rule, retry: { initialDelay: '10ms' } })
  await ac.start()
  await emitMany(10)
  await eventually(async () => {
    const { rows } = await sql.query('select count(distinct event_id)::integer as n from aftercommit.runs')
    return rows[0].n === 10
  })
})

test('names at start and in doctor each SQL function that actions need and cannot call, and starts all the same', async () => {
  const { lines, logger } = collectingLogger()
  const { ac, sql, emit } = await openSubscriptions({ logger })
  const actions = [{ type: 'database', name: 'bill', function: 'billing.notify' }]
  await ac.observers.add({ name: 'invoices', on: 'lamp.lit', actions })
  await ac.start()
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
    expect.stringContaining('billing.notify cannot be called: there is no such schema'),
  ])
  expect((await ac.doctor()).find(({ check }) => check === 'actions')).toMatchObject({
    level: 'problem',
    message: expect.stringContaining('invoices/bill'),
  })
  await sql.query('create schema billing; create table billed (event jsonb)')
  await sql.query(
    'create function billing.notify(event jsonb) returns void language sql as $$ insert into public.billed values (event) $$',
  )
  expect((await ac.doctor()).filter(({ check }) => check === 'actions')).toEqual([])
  await emit('a')
  await eventually(async () => (await sql.query('select from billed')).rowCount === 1)
})

test('a process with a webhook in force has loaded what calls need before its first event', async () => {
  const { url } = await openSubscriptions()
  const script = `
    import { createRequire } from 'node:module'
    import { createAftercommit } from 'aftercommit'
    const ac = createAftercommit({ database: ${JSON.stringify(url)} })
    await ac.observers.add({ name: 'erp', on: 'lamp.lit', actions: [{ type: 'webhook', url: 'https://erp.example.com/hook' }] })
    await ac.start()
    const { cache } = createRequire(import.meta.url)
    console.log(Object.keys(cache).some((path) => path.includes('/undici/')))
    await ac.stop()`
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  expect(said.trim().split('\n').at(-1)).toBe('true')
})
