import { expect, test } from 'vitest'
import type { EventExplanation } from '../../src/observers/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

const QUICK = { maxAttempts: 2, initialDelay: '10ms', maxDelay: '10ms' } as const
const note = (name = 'note') => [{ type: 'custom', name, handler: 'note' }]

function observerOf({ observers }: EventExplanation, name: string) {
  const found = observers.find(({ observer }) => observer === name)
  if (found === undefined) throw new Error(`no ${name} among ${observers.map(({ observer }) => observer).join(', ')}`)
  return found
}

test('an event is explained by every observer: who acted, and why the others did not', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {})
  const on = 'lamp.lit'
  await ac.observers.add({
    name: 'bright',
    on,
    condition: 'watts > 60',
    actions: [{ type: 'custom', name: 'note', handler: 'note', config: { text: '{{ watts }} W', key: 'k' } }],
  })
  await ac.observers.add({ name: 'dim', on, condition: 'watts < 60 && event.kind == "lit"', actions: note() })
  await ac.observers.add({ name: 'colour', on, condition: 'kelvin > 3000', actions: note() })
  await ac.observers.add({ name: 'doors', on: ['door.*', 'gate.*'], actions: note() })
  await ac.observers.add({ name: 'chairs', on, entity: 'chair', actions: note() })
  await ac.start()
  await emit('a', { key: '1', payload: { watts: 100 } })
  const explained = await eventually(async () => {
    const found = await ac.observers.explain('a')
    return observerOf(found, 'bright').actions[0]!.attempts.length === 1 && found
  })

  expect(explained.observers.map(({ observer, verdict }) => [observer, verdict])).toEqual([
    ['bright', 'matched'],
    ['colour', 'field_absent'],
    ['dim', 'condition_false'],
    ['chairs', 'entity'],
    ['doors', 'type'],
  ])
  const bright = observerOf(explained, 'bright')
  expect(bright).toMatchObject({ version: 1, since: 'same', reason: 'Its condition holds.' })
  expect(bright.actions[0]).toMatchObject({
    state: 'done',
    attempts: [{ attempt: 1, outcome: 'success', message: 'note returned', code: null }],
    delivery: null,
    letter: null,
    preview: { actionType: 'custom', content: { handler: 'note', config: { text: '100 W', key: 'k' } } },
  })
  const partOf = (source: string) => observerOf(explained, 'dim').parts.find((part) => part.source === source)?.value
  expect(partOf('watts')).toBe(100)
  expect(partOf('watts < 60')).toBe(false)
  expect(observerOf(explained, 'dim').actions[0]).toMatchObject({ state: 'not_asked', preview: null })
  expect(observerOf(explained, 'colour').reason).toContain('kelvin')
  expect(observerOf(explained, 'chairs').reason).toContain('"lamp"')
  expect(observerOf(explained, 'doors').reason).toContain('door.*, gate.*')
})

test('the rule that was in force then is asked, and what changed since is said', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  ac.observers.action('note', () => {})
  const rule = { on: 'lamp.lit', actions: note() }
  await ac.observers.add({ name: 'same', ...rule })
  await ac.observers.add({ name: 'bright', ...rule, condition: 'watts > 60' })
  await ac.observers.add({ name: 'gone', ...rule })
  await ac.start()
  await emit('a', { payload: { watts: 40 } })
  await eventually(async () => (await ac.observers.explain('a')).checkpoint === 1n)

  await ac.observers.remove('gone')
  await ac.observers.remove('bright')
  await ac.observers.add({ name: 'bright', ...rule, condition: 'watts > 20' })
  await ac.observers.add({ name: 'late', ...rule })
  const explained = await ac.observers.explain('a')
  expect(explained.observers.map(({ observer, verdict, since }) => [observer, verdict, since])).toEqual([
    ['gone', 'matched', 'removed'],
    ['same', 'matched', 'same'],
    ['bright', 'condition_false', 'changed'],
    ['late', 'not_in_force', 'added'],
  ])
  expect(observerOf(explained, 'bright')).toMatchObject({ version: 1, condition: 'watts > 60' })
  // What would be sent now goes by the rule of now.
  expect(observerOf(explained, 'bright').actions[0]!.preview).toMatchObject({ actionType: 'custom' })
  expect(observerOf(explained, 'gone').actions[0]!.preview).toBeNull()
  expect(observerOf(explained, 'late')).toMatchObject({
    version: null,
    reason: expect.stringContaining('above position 1'),
  })
  const { rows } = await sql.query('select count(*)::int as n from aftercommit.runs')
  expect(rows[0].n).toBe(2)
})

test('what failed shows its attempts, what comes next, and in the end its dead letter', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {
    throw new Error('no paper')
  })
  await ac.observers.add({
    name: 'slow',
    on: 'lamp.lit',
    retry: { maxAttempts: 3, initialDelay: '1h', maxDelay: '2h' },
    sequential: true,
    actions: [...note('first'), ...note('second')],
  })
  await ac.observers.add({ name: 'quick', on: 'lamp.lit', retry: QUICK, actions: note() })
  await ac.observers.add({ name: 'loud', on: 'lamp.lit', retry: QUICK, onFailure: 'log', actions: note() })
  await ac.start()
  await emit('a')
  const explained = await eventually(async () => {
    const found = await ac.observers.explain('a')
    // A row may be there before the record of the attempt that made it.
    const states = found.observers.flatMap(({ actions }) => actions.map((one) => `${one.state} ${one.attempts.length}`))
    return states.join() === 'given_up 2,dead 2,retrying 1,queued 0' && found
  })

  const [first, second] = observerOf(explained, 'slow').actions
  expect(first).toMatchObject({
    attempts: [{ attempt: 1, outcome: 'retry', code: 'OB004', message: expect.stringContaining('no paper') }],
    delivery: { attempts: 1, state: 'retrying', error: { code: 'OB004' } },
    letter: null,
  })
  expect(first!.delivery!.runAt.getTime()).toBeGreaterThan(Date.now() + 1_000_000)
  expect(second).toMatchObject({ state: 'queued', attempts: [] })
  const [quick] = observerOf(explained, 'quick').actions
  expect(quick!.attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [1, 'retry'],
    [2, 'dead'],
  ])
  expect(quick!.letter).toMatchObject({ status: 'dead', attempts: 2, error: { code: 'OB013' } })
})

test('a condition that cannot be evaluated is explained with its error and its dead letter', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({ name: 'odd', on: 'lamp.lit', condition: "field_changed('watts')", actions: note() })
  await ac.start()
  await emit('a')
  const explained = await eventually(async () => {
    const found = await ac.observers.explain('a')
    return observerOf(found, 'odd').actions[0]!.letter !== null && found
  })
  expect(observerOf(explained, 'odd')).toMatchObject({
    verdict: 'condition_error',
    reason: expect.stringContaining('changes'),
    actions: [{ state: 'dead', letter: { error: { code: 'OB002' } } }],
  })
})

test('a process that runs nothing explains from the database alone, and says what is not known', async () => {
  const { ac, emit, another } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({ name: 'quiet', on: 'lamp.lit', actions: note() })
  const elsewhere = another()
  await elsewhere.observers.explain('a').then(
    () => expect.unreachable(),
    (error) => expect(error).toMatchObject({ code: 'EVENT_NOT_FOUND' }),
  )
  await emit('before')
  await ac.start()
  await emit('a')
  const explained = await eventually(async () => {
    const found = await elsewhere.observers.explain('a')
    return observerOf(found, 'quiet').actions[0]!.state === 'done' && found
  })
  expect(observerOf(explained, 'quiet').actions[0]!.preview).toBeNull()
  const before = await elsewhere.observers.explain('before')
  expect(observerOf(before, 'quiet')).toMatchObject({
    verdict: 'not_in_force',
    actions: [{ state: 'not_asked', start: 1n }],
  })
})

test('the status tells runs, pauses and dead letters of every observer, also of those that run elsewhere', async () => {
  const { ac, emit, another } = await openSubscriptions()
  ac.observers.action('note', (event) => {
    if (event.id === 'bad') throw new Error('no paper')
  })
  await ac.observers.add({ name: 'print', on: 'lamp.lit', retry: { maxAttempts: 1 }, actions: note() })
  await ac.observers.add({ name: 'off', on: 'lamp.lit', enabled: false, actions: note() })
  await ac.start()
  await emit('good')
  await emit('bad')
  await eventually(async () => {
    const { runs } = (await ac.observers.status())[0]!
    return runs.success > 0 && runs.failure > 0
  })
  await ac.deliveries.pause({ kind: 'action', name: 'print/note' }, { who: 'ada', reason: 'gone' })
  const [print, off] = await ac.observers.status()
  expect(print).toMatchObject({
    name: 'print',
    source: 'program',
    isInForce: true,
    runs: { success: 1, partial: 0, failure: 1 },
    actions: [{ name: 'note', dead: 1, pause: { who: 'ada', reason: 'gone' } }],
  })
  expect(off).toMatchObject({ name: 'off', isInForce: false, enabled: false, lastRunAt: null })
  expect(await another().observers.status()).toMatchObject([
    { name: 'print', source: 'elsewhere', runs: { success: 1 } },
  ])
})
