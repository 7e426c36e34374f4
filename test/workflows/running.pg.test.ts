import { describe, expect, it } from 'vitest'
import { accept, defineWorkflow, after as later, reject, WorkflowPausedError } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

/** Driven by events of the log: placed begins it, shipped ends it. */
interface Saga {
  readonly status: 'none' | 'begun' | 'over'
}

const saga = defineWorkflow<Saga, { order: string; type: 'begin' | 'end' }, { type: 'begun' | 'ended' }, never, string>(
  {
    type: 'saga',
    id: (input) => input.order,
    initial: () => ({ status: 'none' }),
    evolve: (_, event) => ({ status: event.type === 'begun' ? 'begun' : 'over' }),
    decide: ({ status }, { type }) => {
      if (type === 'begin') return status === 'none' ? accept([{ type: 'begun' }]) : reject('begun already')
      return status === 'begun' ? accept([{ type: 'ended' }]) : reject('not begun')
    },
    isTerminal: ({ status }) => status === 'over',
    on: {
      'order.placed': ({ aggregateId }) => ({ order: aggregateId!, type: 'begin' }),
      'order.shipped': ({ aggregateId }) =>
        aggregateId === 'ignored' ? undefined : { order: aggregateId!, type: 'end' },
    },
  },
)

describe('driven by the log', () => {
  const event = (type: string, id: string) => ({ type, aggregate: { type: 'order', id }, payload: null })

  it('events are inputs, once each; rejected is handled; the chain of causes goes on', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(saga)
    await ac.start()
    const emitted = await ac.transaction((tx) =>
      tx.emit([
        event('order.placed', '1'),
        event('order.placed', '1'),
        event('order.shipped', '2'),
        event('order.shipped', 'ignored'),
      ]),
    )
    await eventually(
      async () => (await ac.subscriptions.get('workflow:saga').status()).position >= emitted[3]!.position,
    )
    const [begun, ...none] = await ac.workflows.history(saga, '1')
    expect(none).toEqual([])
    expect(begun!.metadata).toMatchObject({ causationId: emitted[0]!.id, correlationId: emitted[0]!.id, depth: 1 })
    expect((await ac.workflows.list()).items).toHaveLength(1)
    expect(await ac.deadLetters.count()).toBe(0)
  })

  it('one that is over does not come back when its last event is handled again', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(saga)
    await ac.start()
    const [, shipped] = await ac.transaction((tx) => tx.emit([event('order.placed', '1'), event('order.shipped', '1')]))
    const handle = ac.subscriptions.get('workflow:saga')
    const passed = async () => (await handle.status()).position >= shipped!.position
    await eventually(passed)
    expect(await ac.workflows.query(saga, '1')).toMatchObject({ version: 2, completed: true })
    await handle.seek('start')
    await eventually(passed)
    expect(await ac.workflows.query(saga, '1')).toMatchObject({ version: 2, completed: true })
  })

  it('begins at the head unless told', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    await ac.transaction((tx) => tx.emit([event('order.placed', 'before')]))
    ac.workflows.register(saga)
    await ac.start()
    await ac.transaction((tx) => tx.emit([event('order.placed', 'after')]))
    await eventually(async () => (await ac.workflows.query(saga, 'after')) !== undefined)
    expect(await ac.workflows.query(saga, 'before')).toBeUndefined()
  })
})

const waiter = defineWorkflow({
  type: 'waiter',
  id: (input: { id: string; type: string }) => input.id,
  initial: () => [] as readonly string[],
  evolve: (state, event: { type: 'heard'; what: string }) => [...state, event.what],
  decide: (_, { id, type }) =>
    accept([{ type: 'heard', what: type }], {
      ...(type === 'begin' && {
        timers: [later('1ms', { id, type: 'rang' }, { key: 'bell' }), later('1h', { id, type: 'late' })],
        effects: [{ type: 'do' as const, id }],
      }),
    }),
  on: { 'some.thing': ({ aggregateId }) => ({ id: aggregateId!, type: 'thing' }) },
})

describe('paused', () => {
  it('an instance takes no input, fires no timer and does no effect; what came meanwhile follows when it is resumed', async () => {
    const { open, sql } = await openWorkflows()
    const writer = open()
    writer.workflows.register(waiter)
    await writer.workflows.execute(waiter, { id: 'a', type: 'begin' })
    expect(await writer.workflows.pause({ type: 'waiter', id: 'a' }, { who: 'ada', reason: 'looks odd' })).toBe(true)
    expect(await writer.workflows.pause({ type: 'waiter', id: 'a' })).toBe(false)
    const worker = open()
    worker.workflows.register(waiter, { effects: { do: ({ id }) => ({ id, type: 'done' }) } })
    await worker.start()
    await expect(writer.workflows.execute(waiter, { id: 'a', type: 'more' })).rejects.toThrow(WorkflowPausedError)
    const [emitted] = await worker.transaction((tx) =>
      tx.emit([{ type: 'some.thing', aggregate: { type: 'x', id: 'a' }, payload: null }]),
    )
    await eventually(
      async () => (await worker.subscriptions.get('workflow:waiter').status()).position >= emitted!.position,
    )
    expect((await writer.workflows.query(waiter, 'a'))!.state).toEqual(['begin'])
    expect((await writer.workflows.timers()).filter(({ held }) => held)).toHaveLength(3)
    expect(await writer.workflows.resume({ type: 'waiter', id: 'a' })).toBe(true)
    await eventually(async () => (await writer.workflows.query(waiter, 'a'))!.state.length === 4)
    expect([...(await writer.workflows.query(waiter, 'a'))!.state].sort()).toEqual(['begin', 'done', 'rang', 'thing'])
    expect(await writer.workflows.timers()).toMatchObject([{ id: 'a', key: null, held: false }])
    const { rows } = await sql.query('select who, what, target, reason from aftercommit.audit order by id')
    expect(rows).toEqual([
      { who: 'ada', what: 'workflow.pause', target: 'waiter/a', reason: 'looks odd' },
      { who: 'unknown', what: 'workflow.resume', target: 'waiter/a', reason: null },
    ])
  })
})
