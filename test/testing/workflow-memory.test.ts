import { describe, expect, it } from 'vitest'
import { type MemoryWorkflows, memoryBus, memoryWorkflows } from '../../src/testing/index.ts'
import { accept, after, defineWorkflow, reject } from '../../src/workflows/index.ts'
import { order } from './support/order-workflow.ts'

const id = '7'
const place = { type: 'place', id, total: 90 } as const

/** Orders whose payment does as told. */
function openOrders(charge: () => 'pay' | 'nothing' = () => 'nothing') {
  const workflows = memoryWorkflows()
  const mails: string[] = []
  const keys: string[] = []
  workflows.register(order, {
    effects: {
      charge(_, { idempotencyKey, attempt }) {
        keys.push(`${idempotencyKey} ${attempt}`)
        return charge() === 'pay' ? ({ type: 'pay', id } as const) : undefined
      },
      mail: async (_, { workflow }) => void mails.push(workflow.id),
    },
  })
  return { workflows, mails, keys }
}

const typesOf = async (workflows: MemoryWorkflows, of = id) =>
  (await workflows.history(order, of)).map(({ payload }) => payload.type)

describe('workflows in memory', () => {
  it('keep a history, a state and its versions', async () => {
    const { workflows } = openOrders()
    expect(await workflows.execute(order, place)).toEqual({
      outcome: 'accepted',
      events: [{ type: 'placed', total: 90 }],
    })
    await workflows.execute(order, { type: 'pay', id })
    const state = { status: 'paid', total: 90, reminders: 0 }
    expect(await workflows.query(order, id)).toEqual({ state, version: 2, completed: false })
    expect((await workflows.stateAt(order, id, 1))?.state).toEqual({ ...state, status: 'unpaid' })
    expect(await workflows.stateAt(order, id, 3)).toBeUndefined()
    const history = await workflows.history(order, id)
    expect(history.map(({ type, version, key }) => [type, version, key])).toEqual([
      ['order.placed', 1, 'order/7'],
      ['order.paid', 2, 'order/7'],
    ])
    expect(history[1]!.metadata.correlationId).toBe(history[1]!.id)
    expect((await workflows.list()).items).toMatchObject([{ type: 'order', id, version: 2, completed: false }])
  })

  it('leave no trace of what was rejected', async () => {
    const { workflows } = openOrders()
    const outcome = await workflows.execute(order, { type: 'pay', id })
    expect(outcome).toEqual({ outcome: 'rejected', reason: 'new cannot pay' })
    expect([await workflows.query(order, id), (await workflows.list()).items]).toEqual([undefined, []])
  })

  it('do nothing by themselves, and effects with their answers when told', async () => {
    const { workflows, keys } = openOrders(() => 'pay')
    await workflows.execute(order, place)
    expect(keys).toEqual([])
    await workflows.drain()
    expect(keys).toEqual(['order/7:1.0 1'])
    expect(await typesOf(workflows)).toEqual(['placed', 'paid'])
  })

  it('fire timers as time passes, replace them by key, and cancel them at the end', async () => {
    const { workflows, mails } = openOrders()
    await workflows.execute(order, place)
    expect((await workflows.timers()).map(({ key }) => key)).toEqual(['reminder', 'deadline'])
    await workflows.advance('90m')
    expect([await typesOf(workflows), mails]).toEqual([['placed', 'reminded'], ['7']])
    expect((await workflows.timers({ type: 'order', id })).map(({ key, dueAt }) => [key, dueAt.toISOString()])).toEqual(
      [
        ['reminder', '2026-01-01T02:00:00.000Z'],
        ['deadline', '2026-01-01T03:00:00.000Z'],
      ],
    )
    await workflows.advance('10d')
    expect(await typesOf(workflows)).toEqual(['placed', 'reminded', 'reminded', 'expired'])
    expect(await workflows.timers()).toEqual([])
    expect(await workflows.execute(order, { type: 'pay', id })).toEqual({ outcome: 'completed' })
  })

  it('try a failing effect again by its policy, then tell the workflow', async () => {
    const { workflows, keys } = openOrders(() => {
      throw new Error('no answer')
    })
    await workflows.execute(order, place)
    await workflows.advance('10s')
    expect(keys).toEqual([1, 2, 3, 4].map((attempt) => `order/7:1.0 ${attempt}`))
    await workflows.advance('10s')
    expect(await typesOf(workflows)).toEqual(['placed', 'expired'])
    const [letter] = await workflows.deadLetters.list()
    expect(letter).toMatchObject({ kind: 'effect', owner: 'order', key: id, attempts: 5, status: 'resolved' })
  })

  it('redrive a dead letter from its first attempt', async () => {
    let broken = true
    const workflows = memoryWorkflows()
    const attempts: number[] = []
    workflows.register(order, {
      effects: {
        charge: () => undefined,
        mail: {
          retry: { maxAttempts: 1 },
          handle: async (_, { attempt }) => {
            attempts.push(attempt)
            if (broken) throw new Error('no such address')
          },
        },
      },
    })
    await workflows.execute(order, place)
    await workflows.advance('1h')
    expect(await workflows.deadLetters.count({ status: 'dead' })).toBe(1)
    broken = false
    expect(await workflows.deadLetters.redrive({ owner: 'order' })).toBe(1)
    await workflows.drain()
    expect([attempts, await workflows.deadLetters.count({ status: 'dead' })]).toEqual([[1, 1], 0])
  })

  it('give a unique key to one instance until it is over', async () => {
    const { workflows } = openOrders()
    const starts = Array.from({ length: 20 }, (_, n) => workflows.execute(order, { ...place, id: `o${n}` }))
    const ended = await Promise.allSettled(starts)
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const refused = ended.filter((one) => one.status === 'rejected').map(({ reason }) => [reason.code, reason.holder])
    expect(refused).toEqual(Array(19).fill(['UNIQUE_KEY_TAKEN', 'o0']))
    await workflows.advance('3h')
    expect(await workflows.execute(order, { ...place, id: 'later' })).toMatchObject({ outcome: 'accepted' })
  })

  it('serialise the inputs of one instance', async () => {
    const counter = defineWorkflow<{ n: number }, { id: string }, { type: 'counted'; n: number }, never, string>({
      type: 'counter',
      id: (input) => input.id,
      initial: () => ({ n: 0 }),
      evolve: (_, { n }) => ({ n }),
      decide: ({ n }) => (n < 50 ? accept([{ type: 'counted', n: n + 1 }]) : reject('enough')),
      snapshots: { every: 7 },
    })
    const workflows = memoryWorkflows()
    workflows.register(counter)
    await Promise.all(Array.from({ length: 51 }, () => workflows.execute(counter, { id })))
    const history = await workflows.history(counter, id)
    expect(history.map(({ version, payload }) => [version, payload.n])).toEqual(
      Array.from({ length: 50 }, (_, n) => [n + 1, n + 1]),
    )
  })

  it('take an input with an id once, and answer the second time as the first', async () => {
    const { workflows } = openOrders()
    const first = await workflows.execute(order, place, { inputId: 'a' })
    await workflows.execute(order, { type: 'pay', id })
    expect(await workflows.execute(order, place, { inputId: 'a' })).toEqual(first)
    expect(await typesOf(workflows)).toEqual(['placed', 'paid'])
    const no = await workflows.execute(order, place, { inputId: 'b' })
    await workflows.execute(order, { type: 'ship', id })
    expect(await workflows.execute(order, place, { inputId: 'b' })).toEqual(no)
  })

  it('commit with a transaction, or not at all', async () => {
    const { workflows, keys } = openOrders()
    const failed = workflows.transaction(async (tx) => {
      await workflows.execute(order, place, { tx })
      expect(await workflows.query(order, id)).toBeUndefined()
      await workflows.drain()
      throw new Error('changed my mind')
    })
    await expect(failed).rejects.toThrow('changed my mind')
    await workflows.drain()
    expect([await workflows.query(order, id), keys]).toEqual([undefined, []])
    await workflows.transaction(async (tx) => {
      await workflows.execute(order, place, { tx })
      await workflows.execute(order, { type: 'pay', id }, { tx })
    })
    expect(await typesOf(workflows)).toEqual(['placed', 'paid'])
    await expect(workflows.execute(order, place, { tx: {} as never })).rejects.toMatchObject({
      code: 'NOT_A_TRANSACTION',
    })
  })

  it('hold a paused instance, and go on where it stood', async () => {
    const { workflows } = openOrders(() => 'pay')
    await workflows.execute(order, place)
    expect(await workflows.pause({ type: 'order', id })).toBe(true)
    expect(await workflows.pause({ type: 'order', id })).toBe(false)
    await workflows.advance('2h')
    await expect(workflows.execute(order, { type: 'pay', id })).rejects.toMatchObject({ code: 'WORKFLOW_PAUSED' })
    expect(await typesOf(workflows)).toEqual(['placed'])
    await workflows.resume({ type: 'order', id })
    await workflows.drain()
    expect((await typesOf(workflows)).sort()).toEqual(['paid', 'placed', 'reminded'])
  })

  it('are driven by the events of a bus, each once', async () => {
    const bus = memoryBus()
    const workflows = memoryWorkflows({ bus })
    const driven = defineWorkflow<{ n: number }, { id: string }, { type: 'seen' }>({
      type: 'watch',
      id: (input) => input.id,
      initial: () => ({ n: 0 }),
      evolve: ({ n }) => ({ n: n + 1 }),
      decide: () => accept([{ type: 'seen' }]),
      on: { 'order.placed': ({ aggregateId }) => (aggregateId === null ? undefined : { id: aggregateId }) },
    })
    workflows.register(driven)
    await bus.emit('order.placed', { aggregate: { type: 'order', id: '1' }, payload: {} })
    await bus.emit('order.placed', { payload: {} })
    await bus.emit('order.paid', { aggregate: { type: 'order', id: '1' }, payload: {} })
    expect((await workflows.query(driven, '1'))?.state).toEqual({ n: 1 })
    await bus.subscriptions.get('workflow:watch').seek('start')
    await bus.drain()
    expect((await workflows.query(driven, '1'))?.state).toEqual({ n: 1 })
  })

  it('keep the order of events that came during a pause, before what comes when it is over', async () => {
    const bus = memoryBus()
    const workflows = memoryWorkflows({ bus })
    const diary = defineWorkflow({
      type: 'diary',
      id: (input: { id: string; n: number }) => input.id,
      initial: (): readonly number[] => [],
      evolve: (numbers, { n }: { type: 'noted'; n: number }) => [...numbers, n],
      decide: (_, { n }) => accept([{ type: 'noted', n }]),
      on: { 'day.passed': ({ payload }) => ({ id: 'a', n: (payload as { n: number }).n }) },
    })
    workflows.register(diary)
    const pass = (n: number) => bus.emit('day.passed', { payload: { n } })
    const noted = async () => (await workflows.query(diary, 'a'))?.state
    await pass(1)
    await workflows.pause({ type: 'diary', id: 'a' })
    await pass(2)
    await pass(3)
    await workflows.resume({ type: 'diary', id: 'a' })
    await pass(4)
    expect(await noted()).toEqual([1])
    await workflows.drain()
    expect(await noted()).toEqual([1, 2, 3, 4])
    await pass(5)
    expect(await noted()).toEqual([1, 2, 3, 4, 5])
  })

  it('refuse what is not registered, registered twice, or another definition of the same type', async () => {
    const { workflows } = openOrders()
    await expect(memoryWorkflows().execute(order, place)).rejects.toMatchObject({ code: 'UNKNOWN_WORKFLOW' })
    expect(() => workflows.register(order)).toThrow(/registered twice/)
    await expect(workflows.execute({ ...order }, place)).rejects.toThrow(/another definition/)
    expect(await workflows.executeDynamic('order', place)).toMatchObject({ outcome: 'accepted' })
    await expect(workflows.executeDynamic('ordr', place)).rejects.toThrow(/Did you mean "order"/)
  })

  it('give up on a timer that never lets time pass', async () => {
    const restless = defineWorkflow<null, { id: string }, { type: 'woke' }, never, never>({
      type: 'restless',
      id: (input) => input.id,
      initial: () => null,
      evolve: () => null,
      decide: (_, input) => accept([{ type: 'woke' }], { timers: [after('0s', input, { key: 'again' })] }),
      snapshots: { every: 0 },
    })
    const workflows = memoryWorkflows()
    workflows.register(restless)
    await workflows.execute(restless, { id })
    await expect(workflows.drain()).rejects.toThrow(/arms itself/)
  })
})
