import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import type { ObserverOptions } from '../../src/observers/index.ts'
import {
  createObserverExecutor,
  fakeConditions,
  memoryDeadLetters,
  recordingActions,
  testEvent,
} from '../../src/testing/index.ts'

const webhook = (url = 'https://example.com/webhook') => ({ type: 'webhook', url, retry: false })
const shipped = () =>
  testEvent('order.shipped', {
    aggregate: { type: 'order', id: '7' },
    payload: { status: 'shipped', total: 100 },
    metadata: { userId: 'user_123' },
  })

describe('an event and the observers it concerns', () => {
  it('runs the actions of an observer whose pattern matches', async () => {
    const actions = recordingActions()
    const executor = createObserverExecutor({
      config: { observers: { shipping: { on: 'order.shipped', actions: [webhook()], onFailure: 'log' } } },
      actions,
      conditions: fakeConditions(),
    })
    const results = await executor.process(shipped())
    expect(actions.executions.map(({ observer, type, event }) => [observer, type, event.type])).toEqual([
      ['shipping', 'webhook', 'order.shipped'],
    ])
    expect(results).toEqual({
      shipping: [
        {
          action: 'webhook',
          actionType: 'webhook',
          success: true,
          message: 'recorded',
          durationMs: 0,
          outcome: 'success',
          attempts: 1,
        },
      ],
    })
  })

  it('takes the name of an observer without a pattern for the event type', async () => {
    const actions = recordingActions()
    const config = { observers: { 'order.shipped': { actions: [webhook()] } } }
    await createObserverExecutor({ config, actions }).process(shipped())
    expect(actions.executions).toHaveLength(1)
  })

  it('does nothing for an event that no observer is about', async () => {
    const actions = recordingActions()
    const config = { observers: { shipping: { on: 'order.shipped', actions: [webhook()] } } }
    const executor = createObserverExecutor({ config, actions })
    expect(await executor.process(testEvent('order.created'))).toEqual({})
    expect(actions.executions).toEqual([])
    expect(executor.summary).toMatchObject({ events: 1, unmatched: 1, succeeded: 0 })
  })

  it('runs every observer that matches, by type, by pattern and by entity', async () => {
    const log = { actions: [{ type: 'log' }] }
    const config = {
      observers: {
        exact: { on: 'order.shipped', ...log },
        second: { on: 'order.shipped', ...log },
        wildcard: { on: ['invoice.*', 'order.*'], ...log },
        ours: { on: '*', entity: 'order', ...log },
        theirs: { on: '*', entity: 'invoice', ...log },
        off: { on: '*', enabled: false, ...log },
      },
    }
    const results = await createObserverExecutor({ config }).process(shipped())
    expect(Object.keys(results)).toEqual(['exact', 'second', 'wildcard', 'ours'])
  })

  it('does nothing when the condition does not hold', async () => {
    const actions = recordingActions()
    const executor = createObserverExecutor({
      config: { observers: { shipping: { on: 'order.shipped', condition: 'total > 1000', actions: [webhook()] } } },
      actions,
      conditions: fakeConditions().withResult('total > 1000', false),
    })
    expect(await executor.process(shipped())).toEqual({})
    expect(actions.executions).toEqual([])
    expect(executor.summary.conditions).toEqual({ held: 0, notMet: 1, failed: 0 })
  })

  it('runs several actions in the order they are declared', async () => {
    const actions = recordingActions()
    const slack = { type: 'slack', channel: '#orders', message: 'Order shipped' }
    const config = { observers: { 'order.shipped': { actions: [webhook('https://example1.com'), slack] } } }
    await createObserverExecutor({ config, actions }).process(shipped())
    expect(actions.executions.map(({ type }) => type)).toEqual(['webhook', 'slack'])
  })

  it('checks the same words in templates of two observers against the events of each', async () => {
    const events = defineEvents({
      'order.shipped': z.object({ total: z.number() }),
      'order.paid': z.object({ amount: z.number() }),
    })
    const observer = (on: string) => ({ on, actions: [{ type: 'log', message: '{{ total }}' }] })
    const check = (observers: Record<string, ObserverOptions>) =>
      createObserverExecutor({ config: { observers }, events }).ready()
    await expect(check({ one: observer('order.shipped'), two: observer('order.*') })).resolves.toBeUndefined()
    await expect(check({ one: observer('order.shipped'), two: observer('order.paid') })).rejects.toThrow(
      /observer "two"[\s\S]*no field "total"/,
    )
  })

  it('reads the same from TOML', async () => {
    const actions = recordingActions()
    const config = `
      [providers.slack]
      webhook_url = "\${env:SLACK}"

      [observers.shipping]
      on = "order.*"
      condition = "status == 'shipped' && total >= 100.0"

      [[observers.shipping.actions]]
      type = "slack"
      channel = "#orders"
      message = "{{ event.aggregate_id }} for {{ total | currency('EUR') }}"
    `
    const executor = createObserverExecutor({ config, actions, env: { SLACK: 'https://hooks.example.com/T0/B0' } })
    await executor.process(shipped())
    expect(actions.executions.map(({ preview }) => preview.content)).toMatchObject([{ text: '7 for €1.00' }])
  })
})

describe('an action that fails for good', () => {
  const failing = (onFailure: 'dlq' | 'alert' | 'log') => ({
    config: {
      observers: { 'order.shipped': { actions: [webhook()], retry: { maxAttempts: 1 }, onFailure } },
    },
    actions: recordingActions().failing('Simulated failure'),
  })

  it('is a dead letter, with the event and what it failed with', async () => {
    const deadLetters = memoryDeadLetters()
    const executor = createObserverExecutor({ ...failing('dlq'), deadLetters })
    const results = await executor.process(shipped())
    expect(await deadLetters.count()).toBe(1)
    expect(await deadLetters.list()).toMatchObject([
      {
        kind: 'action',
        owner: 'order.shipped/webhook',
        key: 'order/7',
        attempts: 1,
        error: { code: 'OB004', message: 'Simulated failure' },
        event: { type: 'order.shipped', payload: { total: 100 } },
      },
    ])
    expect(results['order.shipped']).toMatchObject([{ success: false, outcome: 'dead', message: 'Simulated failure' }])
    expect(executor.alerts).toEqual([])
  })

  it('is a dead letter and an alert, one in five minutes for an observer', async () => {
    const executor = createObserverExecutor(failing('alert'))
    await executor.process(shipped())
    await executor.process(shipped())
    expect(executor.alerts).toMatchObject([
      { type: 'slack', about: 'order.shipped', count: 1, content: { text: 'order.shipped: Simulated failure' } },
    ])
    await executor.clock.advance(300_001)
    await executor.process(shipped())
    expect(executor.alerts.map(({ count }) => count)).toEqual([1, 2])
    expect(await executor.deadLetters.count()).toBe(3)
  })

  it('leaves no letter where the observer only wants a line in the log', async () => {
    const executor = createObserverExecutor(failing('log'))
    const results = await executor.process(shipped())
    expect(results['order.shipped']).toMatchObject([{ success: false, outcome: 'dead' }])
    expect([await executor.deadLetters.count(), executor.alerts.length]).toEqual([0, 0])
  })

  it('does not keep the other actions from running', async () => {
    const config = {
      observers: { 'order.shipped': { actions: [webhook(), { type: 'log' }], retry: { maxAttempts: 1 } } },
    }
    const asked: string[] = []
    const actions = {
      execute({ type }: { type: string }) {
        asked.push(type)
        if (type === 'webhook') throw new Error('no')
      },
    }
    const results = await createObserverExecutor({ config, actions }).process(shipped())
    expect(asked).toEqual(['webhook', 'log'])
    expect(results['order.shipped']?.map(({ success }) => success)).toEqual([false, true])
  })
})

describe('actions one after the other', () => {
  const inTurn = {
    observers: {
      'order.shipped': {
        sequential: true,
        retry: { maxAttempts: 2, initialDelay: '1m', backoff: 'fixed' },
        actions: [
          { type: 'log', name: 'first' },
          { type: 'log', name: 'second' },
          { type: 'log', name: 'third' },
        ],
      },
    },
  } as const

  it('start when the one before is done, attempts of it included', async () => {
    const asked: string[] = []
    const actions = {
      execute({ action, attempt }: { action: string; attempt: number }) {
        asked.push(`${action} ${attempt}`)
        if (action === 'second' && attempt === 1) throw new Error('not yet')
      },
    }
    const results = await createObserverExecutor({ config: inTurn, actions }).process(shipped())
    expect(asked).toEqual(['first 1', 'second 1', 'second 2', 'third 1'])
    expect(results['order.shipped']?.map(({ action, attempts }) => [action, attempts])).toEqual([
      ['first', 1],
      ['second', 2],
      ['third', 1],
    ])
  })

  it('go on when the one before is dead', async () => {
    const actions = {
      execute({ action }: { action: string }) {
        if (action === 'second') throw new Error('never')
      },
    }
    const executor = createObserverExecutor({ config: inTurn, actions })
    const results = await executor.process(shipped())
    expect(results['order.shipped']?.map(({ outcome }) => outcome)).toEqual(['success', 'dead', 'success'])
    expect(await executor.deadLetters.count({ owner: 'order.shipped/second' })).toBe(1)
  })
})

it('later events of a key wait behind a dead letter, and run when it is gone', async () => {
  const actions = recordingActions().failing('closed')
  const config = {
    observers: {
      orders: { on: 'order.*', orderBy: 'aggregate', retry: { maxAttempts: 1 }, actions: [{ type: 'log' }] },
    },
  }
  const executor = createObserverExecutor({ config, actions })
  await executor.process(shipped())
  actions.setShouldFail(false)
  const paid = testEvent('order.paid', { aggregate: { type: 'order', id: '7' } })
  expect((await executor.process(paid)).orders).toMatchObject([{ outcome: 'kept', success: false, attempts: 0 }])
  const other = testEvent('order.paid', { aggregate: { type: 'order', id: '8' } })
  expect((await executor.process(other)).orders).toMatchObject([{ outcome: 'success' }])
  await executor.deadLetters.discard({ owner: 'orders/log' })
  await executor.process(testEvent('invoice.sent'))
  expect(actions.executions.map(({ event }) => event.key)).toEqual(['order/7', 'order/8', 'order/7'])
})
