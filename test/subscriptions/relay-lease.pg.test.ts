/** A relay that loses its lease while a call of its sink fails: what is left is for whoever has the lease now. */
import { expect, it } from 'vitest'
import { memorySink, SinkUnavailable } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { openSubscriptions } from './support/open-subscriptions.ts'

it.each([
  ['several events', ['a', 'b', 'c', 'd']],
  ['one event', ['a']],
])('with %s, nothing more is sent', async (_, ids) => {
  const { ac, another, sql, emit } = await openSubscriptions()
  const away = memorySink()
  away.failNext(1, new SinkUnavailable('away'))
  const fail = away.hang()
  const relay = ac.relay({ id: 'bus', to: away })
  for (const id of ids) await emit(id)
  await ac.start()
  await eventually(() => away.calls.length)
  const sink = memorySink()
  const thief = another()
  thief.relay({ id: 'bus', to: sink })
  await thief.start()
  // Nobody but the thief can take it from here.
  await sql.query(
    `update aftercommit.subscription_partitions p
        set term = term + 1, owner = (select process from aftercommit.processes o where o.process <> p.owner)`,
  )
  await eventually(() => sink.messages.length === ids.length)
  // A second call would be accepted.
  fail()
  await thief.stop()
  await eventually(async () => (await relay.status()).owner !== null)
  await emit('later')
  await eventually(() => away.messages.length)
  expect(sink.messages.map(({ id }) => id)).toEqual(ids)
  expect(away.messages.map(({ id }) => id)).toEqual(['later'])
})
