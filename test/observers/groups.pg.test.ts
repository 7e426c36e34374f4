/** Groups of observers: services with rules of their own beside each other, and the newest set of one service. */
import { expect, test } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { numbered, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

/** What each observer was called with, as `observer event`. */
function calls(...instances: Pick<Aftercommit, 'observers'>[]): string[] {
  const seen: string[] = []
  for (const ac of instances)
    ac.observers.action('call', (event, { observer }) => void seen.push(`${observer} ${event.id}`))
  return seen
}

const rule = (name: string, on = 'lamp.lit') => ({
  name,
  on,
  actions: [{ type: 'custom', name: 'call', handler: 'call' }],
})

const reasonsOf = (ac: Aftercommit) => ac.health().reasons.join('; ')

test('two services with a group each read with their own rules, beside each other and after one has stopped', async () => {
  const { ac, another, emit } = await openSubscriptions()
  const billing = another({ observers: { group: 'billing' } })
  const seen = calls(ac, billing)
  await ac.observers.add(rule('mail'))
  await ac.start()
  await billing.observers.add(rule('invoice'))
  await billing.start()
  await emit('a')
  await eventually(() => seen.length === 2)
  expect([...seen].sort()).toEqual(['invoice a', 'mail a'])
  expect([ac.health().ready, billing.health().ready]).toEqual([true, true])
  expect((await ac.subscriptions.list()).map(({ id }) => id).sort()).toEqual(['observers', 'observers:billing'])
  expect((await ac.observers.status()).map(({ name, isInForce }) => [name, isInForce])).toEqual([
    ['mail', true],
    ['invoice', true],
  ])
  await billing.stop()
  await emit('b')
  await eventually(() => seen.includes('mail b'))
  expect((await ac.doctor()).find(({ check }) => check === 'observers')).toMatchObject({ level: 'ok' })
})

test('an observer that is in force in another group is refused, and both groups stay as they are', async () => {
  const { ac, another, emit } = await openSubscriptions()
  const billing = another({ observers: { group: 'billing' } })
  const seen = calls(ac, billing)
  await ac.observers.add(rule('mail'))
  await ac.start()
  await billing.observers.add(rule('invoice'))
  await billing.start()
  await expect(billing.observers.add(rule('mail'))).rejects.toMatchObject({
    code: 'BAD_OPTION',
    message: expect.stringContaining('"mail" is in force in group "observers"'),
  })
  await emit('a')
  await eventually(() => seen.length === 2)
  expect([...seen].sort()).toEqual(['invoice a', 'mail a'])
})

test('a superseded process is not ready, names the rules it lost and does not take over again', async () => {
  const { ac: older, another, emit } = await openSubscriptions()
  const newer = another()
  const seen = calls(older)
  const seenByNewer = calls(newer)
  await older.observers.add(rule('mail'))
  await older.observers.add(rule('audit'))
  await older.start()
  await emit('a')
  await eventually(() => seen.length === 2)
  expect(older.health().ready).toBe(true)
  await newer.observers.add(rule('mail'))
  await newer.start()
  await eventually(() => !older.health().ready)
  expect(older.health().live).toBe(true)
  expect(reasonsOf(older)).toContain(
    'newer rules of group "observers" are in force, without these of this process: audit',
  )
  expect(newer.health().ready).toBe(true)
  await eventually(async () =>
    (await newer.doctor()).some(
      ({ check, level, message }) => check === 'observers' && level === 'warning' && message.includes('audit'),
    ),
  )
  await newer.stop()
  // Neither when nobody reads nor by another drain.
  await older.drain({ timeout: '1s' })
  await emit('b')
  expect(await older.drain({ timeout: '1s' })).toMatchObject({ drained: false })
  expect(seen).toHaveLength(2)
  // Rules that somebody asks for are the newest.
  const again = another()
  const seenAgain = calls(again)
  await again.observers.add(rule('audit'))
  await again.start()
  await eventually(() => seenAgain.includes('audit b'))
  expect(seenByNewer).toEqual([])
})

test('a process whose change is overtaken by newer rules at that very moment is not ready', async () => {
  const { ac, sql } = await openSubscriptions()
  calls(ac)
  await ac.observers.add(rule('mail'))
  await ac.start()
  // Another process registers its rules right behind this one.
  await sql.query(`
    create function overtake() returns trigger language plpgsql as $$
    begin
      new.definition := jsonb_set(new.definition, '{version}', '"newer"');
      return new;
    end $$;
    create trigger overtake before update on aftercommit.subscriptions
      for each row when (new.definition <> old.definition) execute function overtake()`)
  await ac.observers.add(rule('audit'))
  await eventually(() => !ac.health().ready)
  expect(reasonsOf(ac)).toContain('newer rules of group "observers" are in force, without these of this process: audit')
})

test('a superseded process is ready again when its rules are registered again, and may read with them', async () => {
  const { ac: older, another, emit } = await openSubscriptions()
  const [newer, same] = [another(), another()]
  const seen = calls(older)
  calls(newer, same)
  await older.observers.add(rule('mail'))
  await older.start()
  await newer.observers.add(rule('audit'))
  await newer.start()
  await eventually(() => !older.health().ready)
  await newer.stop()
  await same.observers.add(rule('mail'))
  await same.start()
  await eventually(() => older.health().ready)
  await same.stop()
  await emit('a')
  await eventually(() => seen.includes('mail a'))
})

test('no event falls between two sets of rules: each one is judged by the older or by the newer', async () => {
  const { ac: older, another, emitMany, emit } = await openSubscriptions()
  const newer = another()
  const seen = calls(older, newer)
  await older.observers.add(rule('mail'))
  await older.start()
  let emitting = true
  let batches = 0
  const writer = (async () => {
    while (emitting) await emitMany(20, { prefix: `batch-${batches++}-` })
  })()
  await eventually(() => seen.length > 40)
  await newer.observers.add(rule('mail', '**'))
  await newer.start()
  const count = seen.length
  await eventually(() => seen.length > count + 40)
  emitting = false
  await writer
  await emit('last')
  await eventually(() => seen.includes('mail last'))
  await eventually(async () => (await newer.subscriptions.get('observers').status()).lag === 0n)
  const ids = Array.from({ length: batches }, (_, batch) => numbered(20, `batch-${batch}-`)).flat()
  expect(ids.filter((id) => !seen.includes(`mail ${id}`))).toEqual([])
})
