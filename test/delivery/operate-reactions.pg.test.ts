import { expect, test } from 'vitest'
import type { Reaction } from '../../src/delivery/index.ts'
import { createTestClock, LazySignal } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'
import { work } from './support/open-delivering.ts'
import { gate, openOperating } from './support/open-operating.ts'
import { eventAt, savedReactions } from './support/reacting.ts'

const never = new LazySignal()

function asking(run: Reaction['run'], words: Partial<Reaction> = {}): Reaction {
  return {
    work: work(() => {}),
    event: eventAt(1n),
    owner: 'shop',
    destination: '',
    tenant: '',
    key: null,
    priority: 0,
    run,
    payload: () => ({}),
    ...words,
  }
}

test('a call that waits for its turn while its name is paused is kept and not begun', async () => {
  const { deliveries, worker, sql } = await openOperating()
  // No time passes, so that the second waits for its turn and for nothing else.
  const one = await worker({ concurrency: 1, clock: createTestClock() })
  one.register(work(() => {}))
  await eventually(async () => (await deliveries.names()).length === 1)
  const first = gate()
  const begun: string[] = []
  const call = (name: string, end: Promise<void>) =>
    asking(() => {
      begun.push(name)
      return end
    })
  const { react, begin } = await savedReactions(one, sql)
  await begin()
  const reacted = react([call('first', first.opened), call('second', Promise.resolve())], never)
  await deliveries.pause({ kind: 'effect', name: 'mail' })
  first.open()
  await reacted
  expect(begun).toEqual(['first'])
  expect(await deliveries.count()).toMatchObject({ paused: 1 })
})
