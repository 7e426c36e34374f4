/** What readers see of captured events, and of the settings of the session that wrote an event. */
import { expect, onTestFinished, test } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { capturedDatabase } from './support/captured.ts'

async function capturedOrders() {
  const database = await capturedDatabase()
  await database.run(
    'create table orders (id integer primary key, status text, note text)',
    "select aftercommit.capture('orders')",
  )
  const ac = createAftercommit({ database: database.url })
  onTestFinished(() => ac.stop())
  return { ...database, ac }
}

test('changes of created and deleted events, and the row before a deleted one, are derived from the payload', async () => {
  const { ac, run } = await capturedOrders()
  await run("insert into orders values (1, 'new', null)", "update orders set note = 'n'", 'delete from orders')
  const seen = await ac.log.read({ from: 0n })
  expect(seen.map(({ type, changes, previous }) => [type, changes, previous])).toEqual([
    ['order.created', { id: { old: null, new: 1 }, status: { old: null, new: 'new' } }, null],
    ['order.updated', { note: { old: null, new: 'n' } }, { id: 1, status: 'new', note: null }],
    [
      'order.deleted',
      { id: { old: 1, new: null }, status: { old: 'new', new: null }, note: { old: 'n', new: null } },
      { id: 1, status: 'new', note: 'n' },
    ],
  ])
})

test('an event that was emitted with such a type has the changes that its emitter gave, or none', async () => {
  const { ac } = await capturedOrders()
  await ac.emitNow('order.created', { aggregate: { type: 'order', id: '1' }, payload: { id: 1 } })
  expect((await ac.log.read({ from: 0n }))[0]!.changes).toBeNull()
})

test('captured, SQL-emitted and tx.emit events carry the settings of their transaction alike', async () => {
  const { ac } = await capturedOrders()
  await ac.transaction(async (tx) => {
    await tx.query(`select set_config('aftercommit.' || name, value, true) from (values ('user_id', 'u1'), ('tenant', 'acme'),
      ('correlation_id', 'request-7'), ('actor_type', 'service'), ('acting_for', 'u2')) s (name, value)`)
    await tx.query("insert into orders values (1, 'new', null)")
    await tx.query("select aftercommit.emit('order.placed', 'order', '1', '{}')")
    await tx.emit('order.placed', { aggregate: { type: 'order', id: '1' }, payload: {} })
    await tx.emit([
      { type: 'order.placed', aggregate: { type: 'order', id: '1' }, payload: {} },
      { type: 'order.placed', aggregate: { type: 'order', id: '1' }, payload: {}, tenant: 'given' },
    ])
  })
  const seen = await ac.log.read({ from: 0n })
  expect(seen).toHaveLength(5)
  for (const { metadata } of seen) {
    expect(metadata).toMatchObject({ userId: 'u1', correlationId: 'request-7', actorType: 'service', actingFor: 'u2' })
    expect(metadata.durationMs).toBeGreaterThanOrEqual(0)
    expect(JSON.stringify(metadata)).not.toContain('u2')
  }
  expect(seen.map(({ tenant }) => tenant)).toEqual(['acme', 'acme', 'acme', 'acme', 'given'])
})

test('an argument of emit wins over the setting of the session; without a setting an event begins its own chain', async () => {
  const { ac } = await capturedOrders()
  await ac.transaction(async (tx) => {
    await tx.query("set local aftercommit.user_id = 'of the session'")
    await tx.emit('order.placed', { payload: {}, metadata: { userId: 'given', correlationId: 'given' } })
  })
  await ac.emitNow('order.placed', { payload: {} })
  const [first, second] = await ac.log.read({ from: 0n })
  expect(first!.metadata).toMatchObject({ userId: 'given', correlationId: 'given' })
  expect(second!.metadata).toMatchObject({ userId: null, correlationId: second!.id })
})

test('actor and duration stand in conditions and in SQL', async () => {
  const { ac, client, run } = await capturedOrders()
  const seen: string[] = []
  ac.observers.action('note', ({ id }) => void seen.push(id))
  await ac.observers.add({
    name: 'of_services',
    on: 'order.created',
    condition:
      "event.metadata.actor_type == 'service' && event.metadata.duration_ms >= 0.0 && status_changed_to('new')",
    actions: [{ type: 'custom', handler: 'note' }],
  })
  await ac.start()
  await run(
    'begin',
    "set local aftercommit.actor_type = 'service'",
    "insert into orders values (1, 'new', null)",
    'commit',
  )
  await run("insert into orders values (2, 'new', null)")
  await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(1)
  const { rows } = await client.query(
    "select metadata ->> 'actor_type' as actor, recorded_at - began_at >= interval '0' as lasted from aftercommit.events order by position limit 1",
  )
  expect(rows).toEqual([{ actor: 'service', lasted: true }])
})
