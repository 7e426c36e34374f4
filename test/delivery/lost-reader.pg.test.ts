import { expect, test } from 'vitest'
import type { Reaction } from '../../src/delivery/index.ts'
import { LazySignal } from '../../src/runtime/index.ts'
import { Leftovers } from '../../src/subscriptions/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { openDelivering, work } from './support/open-delivering.ts'
import { eventAt } from './support/reacting.ts'

test('a reader that lost its lease begins nothing of what waited for a place or for its key, and writes nothing', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker({ concurrency: 1 })
  one.register(work(() => {}))
  const reactions = one.reactions()
  await reactions.begin()
  const lost = new LazySignal()
  const begun: string[] = []
  const { passed, open } = gate()
  const reaction = (name: string, key: string | null): Reaction => ({
    work: work(() => {}),
    event: eventAt(1n),
    owner: 'shop',
    destination: '',
    tenant: '',
    key,
    priority: 0,
    payload: () => ({}),
    run: () => {
      begun.push(name)
      return name === 'first' ? passed : undefined
    },
  })
  const asked = [
    reaction('first', null),
    reaction('waits for a place', null),
    reaction('waits for a place and has a key', 'k'),
    reaction('waits for its key', 'k'),
  ]
  const ended = asked.map((each) => reactions.react([each], new Leftovers(), lost))
  lost.abort(new Error('lease lost'))
  open()
  const ends = await Promise.allSettled(ended)
  expect(ends.slice(1).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(begun).toEqual(['first'])
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
})
