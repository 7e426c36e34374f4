import { expect, test } from 'vitest'
import { stringifyJson, toWire } from '../../src/events/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

test('observers go on with new events after more of theirs were redriven than may be unsaved', async () => {
  const { ac, emit, emitMany, sql } = await openSubscriptions({ runtime: { record: 'problems' } })
  const seen: string[] = []
  ac.observers.action('note', async (event) => {
    await Promise.resolve()
    seen.push(event.id)
  })
  await ac.observers.add({
    name: 'noted',
    on: 'lamp.lit',
    actions: [{ type: 'custom', name: 'note', handler: 'note' }],
  })
  await ac.start()
  await emitMany(300)
  await eventually(() => seen.length === 300)
  await eventually(async () => (await ac.subscriptions.get('observers').status()).lag === 0n)
  for (const event of await ac.log.list({ limit: 300 })) {
    await sql.query(
      `insert into aftercommit.letters
         (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, status)
       values ('subscription', 'observers', $1, $1, $2, $3, '{"name":"Error","message":"test"}', 1, now(), now(), 'dead')`,
      [event.id, String(event.position), stringifyJson(toWire(event))],
    )
  }
  expect(await ac.deadLetters.redrive({ owner: 'observers' })).toBe(300)
  await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 300, { deadline: 90_000 })
  await emit('after-them')
  await eventually(() => seen.includes('after-them'))
})
