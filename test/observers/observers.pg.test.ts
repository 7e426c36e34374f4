import { expect, test } from 'vitest'
import { GiveUp } from '../../src/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

const QUICK = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' } as const

test('two observers of one event both act, and a condition decides which events concern them', async () => {
  const { ac, sql } = await openSubscriptions()
  const seen: string[] = []
  ac.observers.action('note', (event, { config }) => void seen.push(`${(config as { who: string }).who} ${event.id}`))
  await ac.observers.add({
    name: 'all',
    on: 'lamp.*',
    actions: [{ type: 'custom', handler: 'note', config: { who: 'all' } }],
  })
  await ac.observers.add({
    name: 'bright',
    on: 'lamp.lit',
    condition: 'watts > 60',
    actions: [{ type: 'custom', handler: 'note', config: { who: '{{ watts }} W' } }],
  })
  await ac.start()
  await ac.transaction((tx) =>
    tx.emit([
      { type: 'lamp.lit', id: 'a', payload: { watts: 40 } },
      { type: 'lamp.lit', id: 'b', payload: { watts: 100 } },
      { type: 'door.opened', id: 'c', payload: {} },
    ]),
  )
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['100 W b', 'all a', 'all b'])
  const runs = await eventually(async () => {
    const { rows } = await sql.query(
      'select event_id, observer, status from aftercommit.observer_runs order by event_id, observer',
    )
    return rows.length === 3 && rows
  })
  expect(runs).toEqual([
    { event_id: 'a', observer: 'all', status: 'success' },
    { event_id: 'b', observer: 'all', status: 'success' },
    { event_id: 'b', observer: 'bright', status: 'success' },
  ])
})

test('an action that fails is tried again from a row, and its dead letter carries the cause', async () => {
  const { ac, sql, emit } = await openSubscriptions()
  const attempts: number[] = []
  ac.observers.action('broken', (_, { attempt }) => {
    attempts.push(attempt)
    throw new Error('no paper')
  })
  await ac.observers.add({
    name: 'print',
    on: 'lamp.lit',
    retry: QUICK,
    actions: [{ type: 'custom', handler: 'broken' }],
  })
  await ac.start()
  await emit('a')
  const [letter] = await eventually(async () => {
    const letters = await ac.deadLetters.list({ kind: 'action' })
    return letters.length === 1 && letters
  })
  expect(attempts).toEqual([1, 2, 3])
  expect(letter).toMatchObject({ owner: 'print/custom', attempts: 3, error: { code: 'OB013' } })
  expect(letter!.error.message).toContain('no paper')
  expect(letter!.event.id).toBe('a')
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
})

test('a redriven action runs again with the handler as it is now', async () => {
  const { ac, emit } = await openSubscriptions()
  let works = false
  const done: string[] = []
  ac.observers.action('mail', (event) => {
    if (!works) throw new GiveUp('closed')
    done.push(event.id)
  })
  await ac.observers.add({ name: 'mail', on: 'lamp.lit', actions: [{ type: 'custom', handler: 'mail' }] })
  await ac.start()
  await emit('a')
  await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 1)
  works = true
  expect(await ac.deadLetters.redrive({ kind: 'action' }, { who: 'ada' })).toBe(1)
  await eventually(() => done.length === 1)
  await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 1)
})

test('actions of a sequential observer wait for one another, also over retries', async () => {
  const { ac, emit } = await openSubscriptions()
  const done: string[] = []
  ac.observers.action('first', (_, { attempt }) => {
    if (attempt === 1) throw new Error('once')
    done.push('first')
  })
  ac.observers.action('second', () => void done.push('second'))
  ac.observers.action('third', () => void done.push('third'))
  const actions = ['first', 'second', 'third'].map((handler) => ({ type: 'custom', name: handler, handler }))
  await ac.observers.add({ name: 'steps', on: 'lamp.lit', sequential: true, retry: QUICK, actions })
  await ac.start()
  await emit('a')
  await eventually(() => done.length === 3)
  expect(done).toEqual(['first', 'second', 'third'])
})

test('an observer that is added later sees what is committed from then on', async () => {
  const { ac, emit } = await openSubscriptions()
  const seen: string[] = []
  ac.observers.action('note', (event, { observer }) => void seen.push(`${observer} ${event.id}`))
  const note = { on: 'lamp.lit', actions: [{ type: 'custom', handler: 'note' }] }
  await ac.observers.add({ name: 'early', ...note })
  await ac.start()
  await emit('a')
  await eventually(() => seen.length === 1)
  await ac.observers.add({ name: 'late', ...note })
  await emit('b')
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['early a', 'early b', 'late b'])
})

test('with order_by, later events of the key wait behind one that is retried', async () => {
  const { ac, emit } = await openSubscriptions()
  const done: string[] = []
  ac.observers.action('note', (event, { attempt }) => {
    if (event.id === 'a1' && attempt === 1) throw new Error('once')
    done.push(event.id)
  })
  await ac.observers.add({
    name: 'ordered',
    on: 'lamp.lit',
    orderBy: 'aggregate',
    retry: QUICK,
    actions: [{ type: 'custom', handler: 'note' }],
  })
  await ac.start()
  for (const id of ['a1', 'b1', 'a2', 'a3']) await emit(id, { key: id[0]! })
  await eventually(() => done.length === 4)
  expect(done.filter((id) => id.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
})

test('a condition that cannot be evaluated is a dead letter and never silently false', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({
    name: 'changed',
    on: 'lamp.lit',
    condition: "field_changed('watts')",
    actions: [{ type: 'custom', handler: 'note' }],
  })
  await ac.start()
  await emit('a')
  const [letter] = await eventually(async () => {
    const letters = await ac.deadLetters.list({ kind: 'action' })
    return letters.length === 1 && letters
  })
  expect(letter).toMatchObject({ owner: 'changed/custom', attempts: 1, error: { code: 'OB002' } })
})
