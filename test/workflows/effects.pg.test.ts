import { describe, expect, it } from 'vitest'
import { accept, at, defineWorkflow, type EffectContext, GiveUp, after as later, reject } from '../../src/index.ts'
import { gate } from '../delivery/support/open-operating.ts'
import { eventually } from '../support/eventually.ts'
import {
  type Effect,
  type Event,
  fulfilment,
  type Input,
  options,
  type Rejection,
  type State,
} from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

const place = (orderId: string) => ({ type: 'place' as const, orderId, total: 90 })
const QUICKLY = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' } as const

describe('an effect', () => {
  it('is done, and the input it returns is applied', async () => {
    const { open, rows } = await openWorkflows()
    const ac = open()
    const seen: EffectContext[] = []
    ac.workflows.register(fulfilment, {
      effects: {
        charge(effect, context) {
          seen.push(context)
          return { type: 'paid', orderId: effect.orderId, by: 'card' }
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(fulfilment, place('42'))
    await eventually(async () => (await ac.workflows.query(fulfilment, '42'))?.state.status === 'paid')
    expect(seen).toHaveLength(1)
    const [context] = seen
    expect(context).toMatchObject({
      idempotencyKey: 'fulfilment/42:1.0',
      workflow: { type: 'fulfilment', id: '42' },
      attempt: 1,
      isRetry: false,
    })
    expect(context!.createdAt).toBeInstanceOf(Date)
    const [placed, paid] = await ac.workflows.history(fulfilment, '42')
    expect(paid!.metadata).toMatchObject({
      correlationId: placed!.metadata.correlationId,
      causationId: placed!.id,
      depth: 0,
    })
    expect(await rows('deliveries')).toBe(0)
  })

  it('keeps its idempotency key over retries, and one that gives up is a dead letter at once', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const seen: string[] = []
    ac.workflows.register(fulfilment, {
      effects: {
        charge: {
          retry: QUICKLY,
          async handle(_, { idempotencyKey, attempt, isRetry }) {
            seen.push(`${idempotencyKey} ${attempt} ${isRetry}`)
            throw attempt < 2 ? new Error('later') : new GiveUp('never')
          },
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(fulfilment, place('42'))
    const [letter] = await eventually(async () => {
      const letters = await ac.deadLetters.list({ kind: 'effect', owner: 'fulfilment', key: '42' })
      return letters.length > 0 && letters
    })
    expect(seen).toEqual(['fulfilment/42:1.0 1 false', 'fulfilment/42:1.0 2 true'])
    expect(letter).toMatchObject({ attempts: 2, status: 'dead', error: { name: 'GiveUp', message: 'never' } })
    expect(letter!.event.payload).toEqual({ type: 'charge', orderId: '42', total: 90 })
    await ac.deadLetters.redrive(letter!.id)
    await eventually(() => seen.length === 4)
    expect(seen[2]).toBe('fulfilment/42:1.0 1 false')
  })

  it('that became a dead letter is reported to its workflow, which fails and gives its key back', async () => {
    const { open, rows } = await openWorkflows()
    const ac = open()
    const told: unknown[] = []
    const workflow = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      onDeadLetter(letter) {
        told.push(letter)
        return { type: 'failed', orderId: letter.workflow.id, code: letter.error.message }
      },
    })
    ac.workflows.register(workflow, {
      effects: {
        charge() {
          throw new GiveUp('no_money')
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(workflow, { ...place('42'), key: 'ada' })
    await eventually(async () => (await ac.workflows.query(workflow, '42'))?.completed)
    expect(told).toEqual([
      expect.objectContaining({ kind: 'effect', attempts: 1, effect: { type: 'charge', orderId: '42', total: 90 } }),
    ])
    expect((await ac.workflows.query(workflow, '42'))!.state.status).toBe('given_up')
    expect(await rows('workflow_keys')).toBe(0)
    expect(await ac.deadLetters.list()).toMatchObject([{ status: 'resolved', reason: 'the workflow was told' }])
  })

  it('keeps its letter when the workflow cannot be told', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const workflow = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      onDeadLetter() {
        throw new TypeError('a mistake in the workflow')
      },
    })
    ac.workflows.register(workflow, {
      effects: {
        charge() {
          throw new GiveUp('no_money')
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(workflow, place('42'))
    await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 1)
    expect(ac.lines.join('\n')).toContain('could not be told of its dead letter')
  })

  it('is left to others where it is not registered, and nobody at all is an orphan', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment, { effects: { charge: 'elsewhere', notify: async () => {} } })
    await ac.start()
    await ac.workflows.execute(fulfilment, place('42'))
    // Until the process has written down what it can do, its timers have nobody either.
    const orphans = await eventually(async () => {
      const found = await ac.deliveries.orphans()
      return found.length === 1 && found
    })
    expect(orphans).toMatchObject([{ kind: 'effect', name: 'fulfilment/charge', count: 1 }])
  })

  it('of an ordered workflow waits for the one before, also over a retry', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const seen: string[] = []
    const workflow = defineWorkflow({
      type: 'ordered',
      id: (input: { id: string }) => input.id,
      initial: () => 0,
      evolve: (state, _: { type: 'began' }) => state + 1,
      decide: (_, { id }) =>
        accept([{ type: 'began' }], { effects: ['a', 'b', 'c'].map((name) => ({ type: 'do' as const, id, name })) }),
      orderedEffects: true,
    })
    ac.workflows.register(workflow, {
      effects: {
        do: async ({ name }, { attempt }) => {
          seen.push(`${name}${attempt}`)
          if (name === 'a' && attempt === 1) throw new Error('once more')
        },
      },
    })
    await ac.start()
    await ac.workflows.execute(workflow, { id: '1' })
    await eventually(() => seen.length === 4)
    expect(seen).toEqual(['a1', 'a2', 'b1', 'c1'])
  })

  it("is cancelled when its instance is over before it began, unless effectsOnCompletion is 'run'", async () => {
    const { open, rows } = await openWorkflows()
    const seen: string[] = []
    const told: unknown[] = []
    const workflow = (type: string, effectsOnCompletion?: 'run' | 'cancel') =>
      defineWorkflow<State, Input, Event, Effect, Rejection>({
        ...options,
        type,
        ...(effectsOnCompletion && { effectsOnCompletion }),
        onDeadLetter(letter) {
          told.push(letter)
          return { type: 'failed', orderId: letter.workflow.id, code: letter.error.code! }
        },
      })
    const all = [workflow('default'), workflow('cancels', 'cancel'), workflow('runs', 'run')]
    const writer = open()
    for (const one of all) {
      writer.workflows.register(one)
      await writer.workflows.execute(one, place('1'))
      await writer.workflows.execute(one, { type: 'failed', orderId: '1', code: 'x' })
    }
    const worker = open()
    for (const one of all) {
      worker.workflows.register(one, {
        effects: { charge: async (_, { workflow: { type } }) => void seen.push(type), notify: 'elsewhere' },
      })
    }
    await worker.start()
    await eventually(async () => (await rows('deliveries')) === 0)
    expect(seen).toEqual(['runs'])
    const cancelled = (type: string) =>
      expect.objectContaining({
        kind: 'effect',
        workflow: { type, id: '1' },
        effect: { type: 'charge', orderId: '1', total: 90 },
        attempts: 0,
        error: expect.objectContaining({ code: 'EFFECT_CANCELLED', message: expect.stringContaining('was over') }),
      })
    expect(told).toHaveLength(2)
    expect(told).toEqual(expect.arrayContaining([cancelled('default'), cancelled('cancels')]))
    expect(worker.lines.filter((line) => line.includes('an effect was cancelled'))).toHaveLength(2)
    expect(await worker.deadLetters.count()).toBe(0)
  })

  it('that failed before its instance was over is cancelled with the attempts that were made, not as one that never began', async () => {
    const { open } = await openWorkflows()
    const told: { attempts: number; message: string }[] = []
    const workflow = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      onDeadLetter({ workflow: { id }, attempts, error: { message } }) {
        told.push({ attempts, message })
        return { type: 'failed', orderId: id, code: 'x' }
      },
    })
    const ac = open()
    const charge = () => {
      throw new Error('the bank is away')
    }
    ac.workflows.register(workflow, {
      effects: { charge: { handle: charge, retry: { maxAttempts: 3, initialDelay: '1h' } }, notify: 'elsewhere' },
    })
    await ac.start()
    await ac.workflows.execute(workflow, place('1'))
    await eventually(async () => (await ac.deliveries.list({ state: 'retrying' })).length === 1)
    await ac.workflows.execute(workflow, { type: 'failed', orderId: '1', code: 'x' })
    await ac.deliveries.retry({ name: 'fulfilment/charge' })
    await eventually(() => told.length === 1)
    expect(told).toEqual([{ attempts: 1, message: expect.stringContaining('was over before its next attempt began') }])
  })

  it('is done when the decision that ends the instance asks for it', async () => {
    const { open } = await openWorkflows()
    const refunded: string[] = []
    const order = defineWorkflow({
      type: 'order',
      id: ({ id }: { id: string }) => id,
      initial: () => 'open',
      evolve: (_, { type }: { type: 'cancelled' }) => type,
      decide: () => accept([{ type: 'cancelled' }], { effects: [{ type: 'refund' }] }),
      isTerminal: (state) => state === 'cancelled',
    })
    const writer = open()
    writer.workflows.register(order)
    await writer.workflows.execute(order, { id: '1' })
    const worker = open()
    worker.workflows.register(order, {
      effects: { refund: (_: unknown, { workflow }: EffectContext) => void refunded.push(workflow.id) },
    })
    await worker.start()
    await eventually(() => refunded.length === 1)
  })

  it('that an operator cancels is told to its workflow, paused destination or not, and its handler is not called', async () => {
    const { open, rows } = await openWorkflows()
    const called: string[] = []
    const told: string[] = []
    const workflow = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      destination: () => 'bank',
      onDeadLetter({ workflow: { id }, error }) {
        told.push(error.message)
        return { type: 'failed', orderId: id, code: error.code! }
      },
    })
    const writer = open()
    writer.workflows.register(workflow)
    await writer.workflows.execute(workflow, { ...place('42'), key: 'ada' })
    await writer.deliveries.pause({ destination: 'bank' }, { who: 'ada' })
    expect(await writer.deliveries.cancel({ name: 'fulfilment/charge' }, { who: 'ada', reason: 'wrong card' })).toBe(1)
    const worker = open()
    worker.workflows.register(workflow, {
      effects: { charge: async () => void called.push('charge'), notify: 'elsewhere' },
    })
    await worker.start()
    await eventually(async () => (await worker.workflows.query(workflow, '42'))?.completed)
    const [event] = (await worker.workflows.history(workflow, '42')).slice(-1)
    expect(event!.payload).toMatchObject({ type: 'given_up', code: 'EFFECT_CANCELLED' })
    await eventually(async () => (await rows('deliveries')) === 0)
    expect([called, await rows('workflow_keys')]).toEqual([[], 0])
    expect(told).toEqual([expect.stringContaining('ada cancelled it: wrong card')])
  })

  it('that an operator cancels while its handler runs is told to its workflow, and the answer changes nothing', async () => {
    const { open, rows } = await openWorkflows()
    const begun = gate()
    const workflow = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      onDeadLetter: ({ workflow: { id }, error }) => ({ type: 'failed', orderId: id, code: error.code! }),
    })
    const ac = open()
    ac.workflows.register(workflow, {
      effects: {
        async charge({ orderId }, { signal }) {
          begun.open()
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
          return { type: 'paid', orderId, by: 'nobody' }
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(workflow, place('42'))
    await begun.opened
    expect(await ac.deliveries.cancel({ name: 'fulfilment/charge' }, { who: 'ada' })).toBe(1)
    await eventually(async () => (await ac.workflows.query(workflow, '42'))?.completed)
    await eventually(async () => (await rows('deliveries')) === 0)
    expect((await ac.workflows.history(workflow, '42')).map(({ type }) => type)).toEqual([
      'fulfilment.placed',
      'fulfilment.given_up',
    ])
  })

  it('that is cancelled again before its workflow was told is gone', async () => {
    const { open, rows } = await openWorkflows()
    const writer = open()
    writer.workflows.register(fulfilment)
    await writer.workflows.execute(fulfilment, place('42'))
    const [row] = await writer.deliveries.list({ kind: 'effect' })
    expect(await writer.deliveries.cancel(row!.id)).toBe(1)
    expect(await writer.deliveries.cancel(row!.id)).toBe(1)
    expect(await rows('deliveries', `unique_key is null`)).toBe(0)
  })

  it('whose claim was lost applies nothing', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    const [begun, go] = [gate(), gate()]
    let aborted = false
    ac.workflows.register(fulfilment, {
      effects: {
        async charge({ orderId }, { signal }) {
          begun.open()
          await go.opened
          aborted = signal.aborted
          return { type: 'paid', orderId, by: 'nobody' }
        },
        notify: 'elsewhere',
      },
    })
    await ac.start()
    await ac.workflows.execute(fulfilment, place('42'))
    await begun.opened
    await sql.query(`delete from aftercommit.deliveries where token is not null`)
    go.open()
    await eventually(() => ac.lines.some((line) => line.includes('failed; it is tried again')))
    expect(aborted).toBe(false)
    expect((await ac.workflows.query(fulfilment, '42'))!.state.status).toBe('placed')
  })
})

const alarm = defineWorkflow({
  type: 'alarm',
  id: (input: { id: string; type: string; ms?: number; at?: Date }) => input.id,
  initial: () => ({ rung: 0 }),
  evolve: (state, event: { type: 'set' | 'rang' | 'stopped' }) => ({
    rung: state.rung + Number(event.type === 'rang'),
  }),
  decide(_, { id, type, ms = 0, at: time }) {
    const ring = { id, type: 'ring' }
    if (type === 'set') return accept([{ type: 'set' }], { timers: [later(`${ms}ms`, ring, { key: 'bell' })] })
    if (type === 'set at') return accept([{ type: 'set' }], { timers: [at(time!, ring)] })
    if (type === 'stop') return accept([{ type: 'stopped' }], { cancelTimers: ['bell'] })
    if (type === 'repeat')
      return accept([{ type: 'rang' }], { timers: [later('1ms', { id, type: 'ring' }, { key: 'bell' })] })
    return type === 'ring' ? accept([{ type: 'rang' }]) : reject('what?')
  },
})

describe('a timer', () => {
  it('fires once; set again it moves; cancelled it never fires', async () => {
    const { open, rows } = await openWorkflows()
    const ac = open()
    ac.workflows.register(alarm)
    const run = (input: { id: string; type: string; ms?: number; at?: Date }) => ac.workflows.execute(alarm, input)
    await run({ id: 'once', type: 'set', ms: 10 })
    await run({ id: 'moved', type: 'set', ms: 10 })
    await run({ id: 'moved', type: 'set', ms: 3_600_000 })
    await run({ id: 'cancelled', type: 'set', ms: 10 })
    await run({ id: 'cancelled', type: 'stop' })
    await run({ id: 'past', type: 'set at', at: new Date(0) })
    await ac.start()
    const rung = async (id: string) => (await ac.workflows.query(alarm, id))?.state.rung
    await eventually(async () => (await rung('once')) === 1 && (await rung('past')) === 1)
    await eventually(async () => (await rows('deliveries')) === 1)
    expect([await rung('moved'), await rung('cancelled')]).toEqual([0, 0])
    expect(await ac.workflows.timers()).toMatchObject([{ type: 'alarm', id: 'moved', key: 'bell', attempts: 0 }])
  })

  it('that sets itself again while it fires goes on', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const clock = defineWorkflow({
      type: 'clock',
      id: (input: { id: string }) => input.id,
      initial: () => 0,
      evolve: (state, _: { type: 'ticked' }) => state + 1,
      decide: (state, { id }) =>
        accept([{ type: 'ticked' }], state < 5 ? { timers: [later('1ms', { id }, { key: 'tick' })] } : {}),
    })
    ac.workflows.register(clock)
    await ac.start()
    await ac.workflows.execute(clock, { id: 'a' })
    await eventually(async () => (await ac.workflows.query(clock, 'a'))?.state === 6)
    expect(await ac.workflows.timers()).toEqual([])
  })

  it('that was claimed and then cancelled changes nothing', async () => {
    const { open, sql, rows, waiting } = await openWorkflows()
    const ac = open()
    ac.workflows.register(alarm)
    await ac.workflows.execute(alarm, { id: 'a', type: 'set', ms: 1 })
    // Somebody has the instance, so that the timer is claimed and waits for it.
    await sql.query('begin')
    await sql.query(`select from aftercommit.workflow_load('alarm', 'a', true, 0, 0, 1)`)
    const other = open()
    other.workflows.register(alarm)
    await other.start()
    await eventually(async () => (await waiting()) === 1)
    await ac.workflows.execute(alarm, { id: 'a', type: 'stop' }, { tx: sql })
    await sql.query('commit')
    await eventually(() => other.lines.some((line) => line.includes('tried again')))
    expect(await ac.workflows.query(alarm, 'a')).toMatchObject({ version: 2, state: { rung: 0 } })
    expect(await rows('deliveries')).toBe(0)
  })

  it('due while everything was down fires once, as soon as somebody is there', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(alarm)
    await ac.workflows.execute(alarm, { id: 'a', type: 'set', ms: 3_600_000 })
    await sql.query(`update aftercommit.deliveries set run_at = clock_timestamp() - interval '1 hour'`)
    const [one, other] = [open(), open()]
    for (const process of [one, other]) {
      process.workflows.register(alarm)
      await process.start()
    }
    await eventually(async () => (await ac.workflows.query(alarm, 'a'))?.state.rung === 1)
    await eventually(async () => (await ac.workflows.timers()).length === 0)
    expect(await ac.workflows.query(alarm, 'a')).toMatchObject({ version: 2, state: { rung: 1 } })
  })

  it('that cannot be decided becomes a dead letter of its workflow', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const broken = defineWorkflow({
      type: 'broken',
      id: (input: { id: string; fails?: boolean }) => input.id,
      initial: () => 0,
      evolve: (state, _: { type: 'began' }) => state + 1,
      decide(_, { id, fails }) {
        if (fails) throw new GiveUp('a mistake')
        return accept([{ type: 'began' }], { timers: [later('1ms', { id, fails: true })] })
      },
    })
    ac.workflows.register(broken)
    await ac.start()
    await ac.workflows.execute(broken, { id: 'a' })
    const [letter] = await eventually(async () => {
      const letters = await ac.deadLetters.list({ kind: 'timer' })
      return letters.length > 0 && letters
    })
    expect(letter).toMatchObject({ owner: 'broken', key: 'a', error: { name: 'GiveUp' } })
  })
})
