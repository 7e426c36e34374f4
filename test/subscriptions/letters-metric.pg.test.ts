/** Whoever watches one number sees every dead letter, whatever ran out of attempts. */
import { expect, test } from 'vitest'
import { accept, after, defineWorkflow, GiveUp } from '../../src/index.ts'
import { parseExposition } from '../runtime/support.ts'
import { eventually } from '../support/eventually.ts'
import { openSubscriptions } from './support/open-subscriptions.ts'

/** Asks for one effect, and for a timer that it cannot bear. */
const bulbs = defineWorkflow({
  type: 'bulbs',
  id: (input: { type: 'order' | 'wait'; id: string }) => input.id,
  initial: () => 0,
  evolve: (count: number, _: { type: 'ordered' }) => count + 1,
  decide(_, { type, id }) {
    if (type === 'wait') throw new GiveUp('no patience')
    return accept([{ type: 'ordered' }], {
      effects: [{ type: 'buy' }],
      timers: [after('10ms', { type: 'wait' as const, id })],
    })
  },
})

test('letters of subscriptions, actions, effects and timers are counted until they are given up', async () => {
  const { ac, emit } = await openSubscriptions()
  const refuse = () => {
    throw new GiveUp('no')
  }
  ac.subscribe({ id: 'mail:receipts', on: ['lamp.lit'], handle: refuse })
  ac.subscribe({ id: 'quiet', handle: () => {} })
  ac.observers.action('print', refuse)
  await ac.observers.add({
    name: 'paper',
    on: 'lamp.lit',
    actions: [{ type: 'custom', name: 'print', handler: 'print' }],
  })
  ac.workflows.register(bulbs, { effects: { buy: refuse } })
  await ac.start()
  await emit('a')
  await emit('b')
  await ac.workflows.execute(bulbs, { type: 'order', id: '1' })

  const sizes = async () => {
    const { value } = parseExposition(await ac.metrics())
    return (kind: string, owner: string) => value('aftercommit_dlq_size', { kind, owner })
  }
  await eventually(async () => {
    const size = await sizes()
    expect(size('subscription', 'mail:receipts')).toBe(2)
    expect(size('action', 'paper/print')).toBe(2)
    expect(size('effect', 'bulbs')).toBe(1)
    expect(size('timer', 'bulbs')).toBe(1)
    return true
  })
  expect((await sizes())('subscription', 'quiet')).toBe(0)

  await ac.deadLetters.discard({ kind: 'action' }, { who: 'ada' })
  expect(await ac.metrics()).not.toContain('paper/print')
})
