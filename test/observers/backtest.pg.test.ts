import { expect, test } from 'vitest'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'

const custom = { type: 'custom', name: 'note', handler: 'note' }

test('a backtest counts what rules would have done, shows examples, and neither sends nor writes', async () => {
  const { ac, sql, emit } = await openSubscriptions()
  const sent: string[] = []
  ac.observers.action('note', (event) => void sent.push(event.id))
  await ac.observers.add({
    name: 'bright',
    on: 'lamp.lit',
    condition: 'watts > 60',
    actions: [
      { ...custom, config: { text: '{{ watts }} W' } },
      { type: 'log', message: '{{ room | upper }} is lit' },
    ],
  })
  await ac.observers.add({ name: 'all', on: 'lamp.*', actions: [custom] })
  await ac.observers.add({ name: 'off', on: 'lamp.*', enabled: false, actions: [custom] })
  await emit('a', { payload: { watts: 100, room: 'hall' } })
  await emit('b', { payload: { watts: 40, room: 'hall' } })
  await emit('c', { payload: { room: 'hall' } })
  await emit('d', { payload: { watts: 100, room: 'attic' } })
  await emit('e', { type: 'door.opened' })
  const rows = async () => {
    const counted = await sql.query(`select
      (select count(*) from aftercommit.runs)::int as runs, (select count(*) from aftercommit.deliveries)::int as deliveries,
      (select count(*) from aftercommit.observer_versions)::int as versions,
      (select count(*) from aftercommit.subscriptions)::int as subscriptions`)
    return counted.rows[0]
  }
  const report = await ac.observers.test({ since: '1h' })
  expect(report).toMatchObject({ ok: true, events: 4, isComplete: true })
  const [bright, all, ...others] = report.observers
  expect(others).toEqual([])
  expect(bright).toMatchObject({
    observer: 'bright',
    events: 4,
    matched: 2,
    conditionFalse: 1,
    fieldAbsent: 1,
    absentFields: [{ field: 'watts', count: 1 }],
    conditionErrors: 0,
    actions: [
      { name: 'note', wouldSend: 2, errors: 0 },
      { name: 'log', wouldSend: 2, errors: 0 },
    ],
  })
  expect(bright!.samples.map(({ eventId }) => eventId)).toEqual(['a', 'd'])
  expect(bright!.samples[0]!.previews).toMatchObject([
    { action: 'note', content: { config: { text: '100 W' } } },
    { action: 'log', content: { message: 'HALL is lit' } },
  ])
  expect(all).toMatchObject({ matched: 4, samples: { length: 3 } })
  expect(sent).toEqual([])
  expect(await rows()).toEqual({ runs: 0, deliveries: 0, versions: 0, subscriptions: 0 })
})

test('failures of conditions and templates are counted and named, and make it not ok', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({ name: 'changed', on: 'lamp.lit', condition: "field_changed('watts')", actions: [custom] })
  await ac.observers.add({
    name: 'halved',
    on: 'lamp.lit',
    actions: [{ type: 'log', message: '{{ 100 / watts }}' }],
  })
  await emit('a', { payload: { watts: 0 } })
  await emit('b', { payload: { watts: 4 } })
  const report = await ac.observers.test({ since: new Date(0) })
  expect(report.ok).toBe(false)
  expect(report.observers).toMatchObject([
    {
      observer: 'changed',
      matched: 0,
      conditionErrors: 2,
      problems: [{ eventId: 'a', action: null, code: 'OB002' }, {}],
    },
    {
      observer: 'halved',
      matched: 2,
      actions: [{ wouldSend: 1, errors: 1 }],
      problems: [{ eventId: 'a', action: 'log', code: 'OB003' }],
    },
  ])
  expect(await ac.observers.test({ since: '1h', observers: [] })).toMatchObject({ ok: true, events: 0 })
})

test('one observer is tried by name, also one that is off, and a wrong name is refused', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({ name: 'bright', on: 'lamp.lit', enabled: false, actions: [custom] })
  await ac.observers.add({ name: 'all', on: '*', actions: [custom] })
  await emit('a')
  const { observers } = await ac.observers.test({ since: '1h', observers: ['bright'], samples: 0 })
  expect(observers).toMatchObject([{ observer: 'bright', matched: 1, samples: [] }])
  await expect(ac.observers.test({ since: '1h', observers: ['brigth'] })).rejects.toMatchObject({
    code: 'BAD_OPTION',
    message: expect.stringContaining('Did you mean "bright"?'),
  })
})

test('a long history is read page by page, in its time, up to a limit, with progress', async () => {
  const { ac, sql, emitMany } = await openSubscriptions()
  ac.observers.action('note', () => {})
  await ac.observers.add({ name: 'all', on: 'lamp.*', actions: [custom] })
  await emitMany(1_700)
  const seen: [bigint, bigint][] = []
  const report = await ac.observers.test({ since: '1h', onProgress: (done, of) => void seen.push([done, of]) })
  expect(report.observers[0]).toMatchObject({ events: 1_700, matched: 1_700 })
  expect(seen.length).toBeGreaterThan(2)
  expect(seen.at(-1)).toEqual([1_700n, 1_700n])

  const limited = await ac.observers.test({ since: '1h', limit: 600 })
  expect(limited).toMatchObject({ events: 600, isComplete: false })
  const { rows } = await sql.query('select recorded_at from aftercommit.events order by position limit 1')
  expect(await ac.observers.test({ since: '1h', until: rows[0].recorded_at })).toMatchObject({ events: 0 })
  expect(await ac.observers.test({ since: new Date(Date.now() + 60_000) })).toMatchObject({ events: 0, ok: true })
})
