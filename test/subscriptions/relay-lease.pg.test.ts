/** A relay that loses its lease while a call of its sink fails: what is left is for whoever has the lease now. */
import { expect, it } from 'vitest'
import { memorySink, SinkUnavailable } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { openSubscriptions, QUICK } from './support/open-subscriptions.ts'

it.each([
  ['the first call, with several events', 1, ['a', 'b', 'c', 'd']],
  ['the first call, with one event', 1, ['a']],
  ['the second call, with several events', 2, ['a', 'b', 'c', 'd']],
])('nothing more is sent after %s', async (_, failures, ids) => {
  const { ac, another, sql, emit } = await openSubscriptions()
  const away = memorySink()
  // One more call would be accepted.
  away.failNext(failures, new SinkUnavailable('away'))
  let fail = away.hang()
  const relay = ac.relay({ id: 'bus', to: away, retry: QUICK })
  for (const id of ids) await emit(id)
  await ac.start()
  await eventually(() => away.calls.length === 1)
  while (away.calls.length < failures) {
    fail()
    const called = away.calls.length
    fail = away.hang()
    await eventually(() => away.calls.length > called)
  }
  const sink = memorySink()
  const thief = another()
  thief.relay({ id: 'bus', to: sink })
  await thief.start()
  // Nobody but the thief can take it from here.
  await sql.query(
    `update aftercommit.subscription_partitions p
        set term = term + 1, owner = (select lease from aftercommit.processes o where o.lease <> p.owner)`,
  )
  await eventually(() => sink.messages.length === ids.length)
  fail()
  await thief.stop()
  await eventually(async () => (await relay.status()).owner !== null)
  await emit('later')
  await eventually(() => away.messages.length)
  expect(sink.messages.map(({ id }) => id)).toEqual(ids)
  expect(away.messages.map(({ id }) => id)).toEqual(['later'])
})
