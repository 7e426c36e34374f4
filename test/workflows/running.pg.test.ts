import { describe, expect, it } from 'vitest'
import { accept, defineWorkflow, after as later, reject, WorkflowPausedError } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { counter } from './support/fulfilment.ts'
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
    await ac.transaction((tx) => tx.emit([event('order.placed', '1'), event('order.shipped', '1')]))
    await eventually(async () => (await ac.workflows.query(saga, '1'))?.completed)
    const handle = ac.subscriptions.get('workflow:saga')
    const { position } = await handle.status()
    await handle.seek('start')
    await eventually(async () => (await handle.status()).position >= position)
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

describe('a schedule', () => {
  it('fires in one of all processes, does what it does with the next time in one transaction, and is stored', async () => {
    const { open, sql, rows } = await openWorkflows()
    const processes = [open(), open()]
    for (const ac of processes) {
      ac.workflows.register(counter)
      await ac.schedules.add({ id: 'count', cron: '* * * * * *', execute: { workflow: counter, input: { id: 'a' } } })
      await ac.schedules.add({
        id: 'tell',
        cron: '* * * * * *',
        zone: 'Europe/Berlin',
        emit: (due) => ({ type: 'clock.struck', payload: { due: due.toISOString() } }),
      })
      await ac.start()
    }
    const [ac] = processes
    const told = async () => ac!.log.list({ on: ['clock.struck'], limit: 100 })
    await eventually(
      async () => (await told()).length >= 2 && ((await ac!.workflows.query(counter, 'a'))?.version ?? 0) >= 2,
    )
    const events = await told()
    const due = events.map(({ payload }) => (payload as { due: string }).due)
    expect(new Set(due).size).toBe(due.length)
    expect(events.every(({ metadata }) => metadata.depth === 0)).toBe(true)
    expect(await ac!.schedules.list()).toMatchObject([
      { id: 'count', zone: 'UTC', action: 'execute counter' },
      { id: 'tell', zone: 'Europe/Berlin', action: 'emit' },
    ])
    expect(await rows('deliveries', 'unique_key is not null')).toBe(2)
    for (const process of processes)
      await process.schedules.remove('count').then(() => process.schedules.remove('tell'))
    expect(await rows('schedules')).toBe(0)
    expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
  })

  it('due during an outage fires once, and goes on with the next time', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    const add = (process: typeof ac) =>
      process.schedules.add({ id: 'daily', cron: '0 3 * * *', execute: { workflow: counter, input: { id: 'a' } } })
    await add(ac)
    await ac.start()
    await ac.stop()
    await sql.query(`update aftercommit.deliveries set run_at = clock_timestamp() - interval '5 days'`)
    const other = open()
    other.workflows.register(counter)
    await add(other)
    await other.start()
    await eventually(async () => (await other.workflows.query(counter, 'a'))?.version === 1)
    const [schedule] = await other.schedules.list()
    expect(schedule!.nextAt!.getTime()).toBeGreaterThan(schedule!.lastAt!.getTime())
    expect(schedule!.nextAt!.getUTCHours()).toBe(3)
  })

  it('with another time takes it; the same time again changes nothing', async () => {
    const { open } = await openWorkflows()
    const nextAt = async (cron: string) => {
      const ac = open()
      await ac.schedules.add({ id: 'daily', cron, emit: { type: 'day.began', payload: null } })
      await ac.start()
      const [schedule] = await ac.schedules.list()
      return schedule!.nextAt!.getUTCHours()
    }
    expect([await nextAt('0 3 * * *'), await nextAt('0 3 * * *'), await nextAt('0 4 * * *')]).toEqual([3, 3, 4])
  })

  it('that nobody can read, or that has nothing to do, is refused', async () => {
    const { open } = await openWorkflows()
    const { schedules } = open()
    const emit = { type: 'a.b', payload: null }
    await expect(schedules.add({ id: 'x', cron: 'every day', emit })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(schedules.add({ id: 'x', cron: '* * * * *', zone: 'Moon/Base', emit })).rejects.toThrow(/time zone/)
    await expect(schedules.add({ id: 'x', cron: '* * * * *' })).rejects.toThrow(/either `emit` or `execute`/)
    await expect(schedules.add({ id: 'x y', cron: '* * * * *', emit })).rejects.toThrow(/needs an `id`/)
  })
})
