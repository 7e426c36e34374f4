/** Actions one after the other, whatever happens to one of them. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import { GiveUp } from '../../src/index.ts'
import { gate, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

const QUICK = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' } as const
const steps = (...names: string[]) => names.map((handler) => ({ type: 'custom', name: handler, handler }))

async function isEmpty(sql: pg.Client): Promise<boolean> {
  return (await sql.query('select from aftercommit.deliveries')).rowCount === 0
}

test('the next action of a sequence begins when a slow one has ended', async () => {
  const { ac, emit } = await openSubscriptions()
  const { passed, open } = gate()
  const done: string[] = []
  let isBegun = false
  ac.observers.action('first', async () => {
    isBegun = true
    await passed
    done.push('first')
  })
  ac.observers.action('second', () => void done.push('second'))
  await ac.observers.add({ name: 'steps', on: 'lamp.lit', sequential: true, actions: steps('first', 'second') })
  await ac.start()
  await emit('a')
  await eventually(() => isBegun)
  expect(done).toEqual([])
  open()
  await eventually(() => done.length === 2)
  expect(done).toEqual(['first', 'second'])
  await eventually(async () => {
    const { observers } = await ac.observers.explain('a')
    expect(observers[0]!.actions.map(({ name, state }) => [name, state])).toEqual([
      ['first', 'done'],
      ['second', 'done'],
    ])
    return true
  })
})

test('redriving a dead action does not repeat those that came after it', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const done: string[] = []
  let works = false
  ac.observers.action('first', () => {
    if (!works) throw new GiveUp('closed')
    done.push('first')
  })
  ac.observers.action('second', () => void done.push('second'))
  await ac.observers.add({ name: 'steps', on: 'lamp.lit', sequential: true, actions: steps('first', 'second') })
  await ac.start()
  await emit('a')
  await eventually(() => done.length === 1)
  works = true
  await ac.deadLetters.redrive({ kind: 'action' }, { who: 'ada' })
  await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 1)
  // What follows an action is added with its end, so there is nothing more to come.
  await eventually(() => isEmpty(sql))
  expect(done).toEqual(['second', 'first'])
})

test('a sequence goes on behind an action that was taken away', async () => {
  const { ac, emit } = await openSubscriptions()
  const done: string[] = []
  ac.observers.action('first', (_, { attempt }) => {
    if (attempt === 1) throw new Error('busy')
    done.push('first')
  })
  for (const name of ['second', 'third']) ac.observers.action(name, () => void done.push(name))
  const rule = { name: 'steps', on: 'lamp.lit', sequential: true, retry: { initialDelay: '1h', maxDelay: '1h' } }
  await ac.observers.add({ ...rule, actions: steps('first', 'second', 'third') })
  await ac.start()
  await emit('a')
  const [row] = await eventually(async () => {
    const found = await ac.deliveries.list()
    return found.length === 1 && found
  })
  await ac.observers.add({ ...rule, actions: steps('first', 'third') })
  await ac.deliveries.retry({ ids: [row!.id] })
  await eventually(() => done.length === 2)
  expect(done).toEqual(['first', 'third'])
})

test('no action runs for an event whose condition could not be evaluated', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const done: string[] = []
  for (const name of ['first', 'second']) ac.observers.action(name, () => void done.push(name))
  await ac.observers.add({
    name: 'steps',
    on: 'lamp.lit',
    condition: 'payload.watts > 60',
    strict: true,
    sequential: true,
    actions: steps('first', 'second'),
  })
  await ac.start()
  await emit('a', { payload: {} })
  await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 2)
  await eventually(() => isEmpty(sql))
  const letters = await ac.deadLetters.list()
  expect(letters.map(({ owner, error }) => `${owner} ${error.code}`).sort()).toEqual([
    'steps/first OB002',
    'steps/second OB002',
  ])
  expect(done).toEqual([])
})

test('order_by holds for the later actions, too', async () => {
  const { ac, emit } = await openSubscriptions()
  const second: string[] = []
  ac.observers.action('first', (_, { attempt }) => {
    if (attempt === 1) throw new Error('once')
  })
  ac.observers.action('second', (event, { attempt }) => {
    if (event.id === 'a' && attempt < 3) throw new Error('busy')
    second.push(event.id)
  })
  await ac.observers.add({
    name: 'steps',
    on: 'lamp.lit',
    sequential: true,
    orderBy: 'aggregate',
    retry: QUICK,
    actions: steps('first', 'second'),
  })
  await ac.start()
  await emit('a', { key: 'k' })
  await emit('b', { key: 'k' })
  await eventually(() => second.length === 2)
  expect(second).toEqual(['a', 'b'])
})
