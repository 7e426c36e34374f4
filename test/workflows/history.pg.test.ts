import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  accept,
  defineEvents,
  defineWorkflow,
  reject,
  type StandardSchema,
  UndecodableEventError,
} from '../../src/index.ts'
import { makePartitionsSmall } from '../log/support/small-partitions.ts'
import { eventually } from '../support/eventually.ts'
import {
  counter,
  type Effect,
  type Event,
  fulfilment,
  type Input,
  options,
  type Rejection,
  type State,
} from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

const place = (orderId: string, total = 90) => ({ type: 'place' as const, orderId, total })

interface Sums {
  readonly sum: number
  readonly words: readonly string[]
}

const sums = (every: number, version = 1) =>
  defineWorkflow({
    type: 'sums',
    id: (input: { id: string; words: readonly string[]; again?: boolean }) => input.id,
    initial: (): Sums => ({ sum: 0, words: [] }),
    evolve: ({ sum, words }, event: { type: 'said'; word: string }) => ({
      sum: sum + event.word.length,
      words: [...words, event.word].slice(-5),
    }),
    decide(_, { id, words, again }) {
      const [first, ...rest] = words.map((word) => ({ type: 'said' as const, word }))
      if (!first) return reject('nothing said')
      return again ? accept([first, ...rest], { continueAsNew: { id, words: ['again'] } }) : accept([first, ...rest])
    },
    snapshots: { every, version },
  })

describe('snapshots', () => {
  it('and the tail behind them give what a replay of everything gives, for any history', async () => {
    const { open, rows } = await openWorkflows()
    const [writer, reader, plain] = [open(), open(), open()]
    const [snapping, replaying] = [sums(3), sums(0, 2)]
    writer.workflows.register(snapping)
    reader.workflows.register(snapping)
    // Takes no notice of snapshots of another version, so it replays from the first event, or from a new life.
    plain.workflows.register(replaying)
    let histories = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            words: fc.array(fc.string({ maxLength: 9 }), { minLength: 1, maxLength: 4 }),
            again: fc.boolean(),
          }),
          {
            minLength: 1,
            maxLength: 12,
          },
        ),
        async (inputs) => {
          const id = `h${histories++}`
          for (const input of inputs) await writer.workflows.execute(snapping, { id, ...input })
          const expected = await plain.workflows.query(replaying, id)
          expect(await reader.workflows.query(snapping, id)).toEqual(expected)
          for (let version = 1; version <= expected!.version; version++) {
            const then = await reader.workflows.stateAt(snapping, id, version)
            expect(then).toEqual(await plain.workflows.stateAt(replaying, id, version))
            expect(then!.version).toBe(version)
          }
        },
      ),
      { numRuns: 20 },
    )
    expect(await rows('workflow_snapshots', 'state is not null')).toBeGreaterThan(0)
    const { types, findings } = await reader.workflows.check()
    expect(findings).toEqual([])
    expect(types[0]).toMatchObject({ instances: histories })
    expect(types[0]!.snapshots).toBeGreaterThan(0)
  })

  it('are few: every so many events, and as many as are kept', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    const workflow = sums(10)
    ac.workflows.register(workflow)
    for (let n = 0; n < 35; n++) await ac.workflows.execute(workflow, { id: 'a', words: ['x'] })
    const { rows } = await sql.query('select version from aftercommit.workflow_snapshots')
    expect(rows).toEqual([{ version: '30' }])
  })
})

describe('a history', () => {
  it('is a stream of the log: in order, with correlation and causation', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    await ac.workflows.execute(fulfilment, place('42'))
    await ac.workflows.execute(fulfilment, { type: 'paid', orderId: '42', by: 'ada' })
    const stream = await ac.log.stream({ type: 'fulfilment', id: '42' })
    expect(stream.map(({ type, version }) => `${version} ${type}`)).toEqual([
      '1 fulfilment.placed',
      '2 fulfilment.payment_received',
    ])
    expect((await ac.workflows.history(fulfilment, '42', { from: 2 })).map(({ payload }) => payload)).toEqual([
      { type: 'payment_received', by: 'ada' },
    ])
    expect(stream[0]!.metadata.correlationId).toBe(stream[0]!.id)
  })

  it('of an older version is lifted; one of a newer version stops, and nothing is guessed', async () => {
    const { open } = await openWorkflows()
    const version = (n: number, upcast: Record<number, (event: never) => unknown>) =>
      defineWorkflow({
        type: 'priced',
        id: (input: { id: string }) => input.id,
        initial: () => [] as unknown[],
        evolve: (state, event: { type: 'priced' }) => [...state, event],
        decide: () => accept([n === 1 ? { type: 'priced', price: 5 } : { type: 'priced', cents: 700 }]),
        ...(n === 1 ? {} : { events: { priced: { version: n, upcast } } }),
      })
    const [old, now] = [open(), open()]
    const [v1, v3] = [
      version(1, {}),
      version(3, {
        1: ({ price }: { price: number }) => ({ type: 'priced', cents: price * 100 }),
        2: (event: object) => ({ ...event, currency: 'EUR' }),
      }),
    ]
    old.workflows.register(v1)
    now.workflows.register(v3)
    await old.workflows.execute(v1, { id: 'a' })
    await now.workflows.execute(v3, { id: 'a' })
    expect((await now.workflows.query(v3, 'a'))!.state).toEqual([
      { type: 'priced', cents: 500, currency: 'EUR' },
      { type: 'priced', cents: 700 },
    ])
    const two = open()
    const v2 = version(2, { 1: (event) => event })
    two.workflows.register(v2)
    await expect(two.workflows.execute(v2, { id: 'a' })).rejects.toMatchObject({ code: 'SCHEMA_VERSION_TOO_NEW' })
  })

  it('that cannot be read says which event of which instance', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    await ac.workflows.execute(counter, { id: 'a' })
    await ac.workflows.execute(counter, { id: 'a' })
    await sql.query(`update aftercommit.events set payload = 'null' where version = 2`)
    const other = open()
    const strict = defineWorkflow({
      ...counter,
      evolve(state: { count: number; events: number }, event: { type: 'counted'; by: number }) {
        return { count: state.count + event.by, events: state.events + 1 }
      },
    })
    other.workflows.register(strict)
    const error = await other.workflows.execute(strict, { id: 'a' }).catch((fault) => fault)
    expect(error).toBeInstanceOf(UndecodableEventError)
    expect(error).toMatchObject({ code: 'UNDECODABLE', workflowType: 'counter', workflowId: 'a', version: 2 })
    expect((await other.workflows.check()).findings).toMatchObject([{ id: 'a', version: 2, about: 'event' }])
  })

  it('that lost an event to somebody says so', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    for (let n = 0; n < 3; n++) await ac.workflows.execute(counter, { id: 'a' })
    await sql.query('delete from aftercommit.events where version = 2')
    const other = open()
    other.workflows.register(counter)
    await expect(other.workflows.query(counter, 'a')).rejects.toMatchObject({ code: 'HISTORY_LOST' })
  })

  it('begins anew with continue-as-new: versions go on, the state and the timers do not', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    await ac.workflows.execute(fulfilment, place('42'))
    await ac.workflows.execute(fulfilment, { type: 'remind', orderId: '42' })
    await ac.workflows.execute(fulfilment, { type: 'again', orderId: '42', total: 5 })
    const expected = { state: { status: 'placed', total: 5, reminders: 0 }, version: 4, completed: false }
    expect(await ac.workflows.query(fulfilment, '42')).toEqual(expected)
    expect((await ac.workflows.list()).items).toMatchObject([{ id: '42', version: 4, generation: 2, completed: false }])
    expect(await ac.workflows.stateAt(fulfilment, '42', 2)).toMatchObject({ state: { reminders: 1, total: 90 } })
    expect(await ac.workflows.timers()).toHaveLength(1)
    expect((await ac.workflows.check()).findings).toEqual([])
  })
})

describe('a list', () => {
  it('goes by the last event, newest first, page by page, over one workflow or all', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    ac.workflows.register(counter)
    for (let n = 0; n < 7; n++) await ac.workflows.execute(counter, { id: `c${n}` })
    for (let n = 0; n < 3; n++) await ac.workflows.execute(fulfilment, place(`f${n}`))
    await ac.workflows.execute(counter, { id: 'c0' })
    const seen: string[] = []
    let pages = 0
    for (let after: string | undefined; ; ) {
      const { items, next } = await ac.workflows.list(undefined, { limit: 4, ...(after && { after }) })
      seen.push(...items.map(({ id }) => id))
      pages++
      if (next === undefined) break
      after = next
    }
    expect(seen).toEqual(['c0', 'f2', 'f1', 'f0', 'c6', 'c5', 'c4', 'c3', 'c2', 'c1'])
    expect(pages).toBe(3)
    const { items } = await ac.workflows.list(counter, { limit: 2 })
    expect(items).toMatchObject([
      { id: 'c0', version: 2 },
      { id: 'c6', version: 1 },
    ])
    expect(items[0]!.lastEventAt.getTime()).toBeGreaterThanOrEqual(items[0]!.createdAt.getTime())
  })
})

describe('what is refused', () => {
  it('an unknown type, one that is registered twice, one that is a stream', async () => {
    const anything: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
    const { open, sql } = await openWorkflows()
    const ac = open({ events: defineEvents({ 'a.b': anything }, { streams: ['counter'] }) })
    ac.workflows.register(fulfilment)
    await expect(ac.workflows.executeDynamic('fulfillment', {})).rejects.toThrow(/Did you mean "fulfilment"/)
    expect(() => ac.workflows.register(fulfilment)).toThrow(/registered twice/)
    expect(() => ac.workflows.register(counter)).toThrow(/declared stream/)
    await expect(ac.workflows.query(counter, 'a')).rejects.toMatchObject({ code: 'UNKNOWN_WORKFLOW' })
    await sql.query(`select aftercommit.declare_stream('fulfilment')`)
    await expect(ac.workflows.execute(fulfilment, place('1'))).rejects.toMatchObject({ code: 'BAD_DEFINITION' })
    expect((await ac.workflows.list()).items).toEqual([])
  })

  it('an input by name goes the same way as one by type', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    expect(await ac.workflows.executeDynamic('fulfilment', place('1'))).toMatchObject({ outcome: 'accepted' })
    await expect(ac.workflows.executeDynamic('fulfilment', { type: 'place' })).rejects.toMatchObject({
      code: 'BAD_ANSWER',
    })
  })
})

describe('observations', () => {
  it('keep every outcome with its input, redacted where asked, and are the base of a check', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    const observed = defineWorkflow<State, Input, Event, Effect, Rejection>({ ...options, observe: {} })
    ac.workflows.register(observed)
    await ac.workflows.execute(observed, { type: 'ship', orderId: '1' }, { inputId: 'first' })
    await ac.workflows.execute(observed, place('1'))
    await ac.workflows.execute(observed, { type: 'failed', orderId: '1', code: 'x' })
    await ac.workflows.execute(observed, place('1'))
    const { rows } = await sql.query(
      `select outcome, input_type, input_id, rejection, version, events from aftercommit.input_observations order by number`,
    )
    expect(rows).toEqual([
      {
        outcome: 'rejected',
        input_type: 'ship',
        input_id: 'first',
        rejection: { why: 'not_paid' },
        version: '0',
        events: 0,
      },
      { outcome: 'accepted', input_type: 'place', input_id: null, rejection: null, version: '0', events: 1 },
      { outcome: 'accepted', input_type: 'failed', input_id: null, rejection: null, version: '1', events: 1 },
      { outcome: 'already_completed', input_type: 'place', input_id: null, rejection: null, version: '2', events: 0 },
    ])
    expect(await ac.workflows.check()).toMatchObject({
      findings: [],
      types: [{ instances: 1, events: 2, decisions: 3 }],
    })

    const changed = open()
    changed.workflows.register(
      defineWorkflow<State, Input, Event, Effect, Rejection>({
        ...options,
        observe: {},
        isTerminal: (state) => state.status === 'shipped',
        decide: (state, input, context) =>
          input.type === 'failed' ? reject({ why: 'not_placed' }) : options.decide(state, input, context),
      }),
    )
    const { findings } = await changed.workflows.check()
    expect(findings.map(({ about, message }) => `${about}: ${message}`)).toEqual([
      'decision: An input that was accepted would be rejected now.',
      'end: The instance is completed, but `isTerminal` says false of its last state.',
    ])
  })

  it('that are redacted say nothing about the input, and go when their time is over', async () => {
    const { open, sql, rows } = await openWorkflows()
    const ac = open()
    const observed = defineWorkflow<State, Input, Event, Effect, Rejection>({
      ...options,
      observe: { retention: '1h', redact: ({ type }) => ({ type }), redactRejection: () => 'hidden' },
    })
    ac.workflows.register(observed)
    await ac.workflows.execute(observed, { type: 'ship', orderId: 'secret' })
    const found = await sql.query('select input, rejection, redacted from aftercommit.input_observations')
    expect(found.rows).toEqual([{ input: { type: 'ship' }, rejection: 'hidden', redacted: true }])
    // Another process is set to a shorter time: only that of the writer counts.
    const other = open()
    other.workflows.register(
      defineWorkflow<State, Input, Event, Effect, Rejection>({ ...options, observe: { retention: '1ms' } }),
    )
    await other.upkeep()
    expect(await rows('input_observations')).toBe(1)
    await sql.query(`update aftercommit.input_observations set keep_until = keep_until - interval '2 hours'`)
    await ac.upkeep()
    expect(await rows('input_observations')).toBe(0)
  })
})

it('outcomes of inputs are kept for seven days', async () => {
  const { open, sql, rows } = await openWorkflows()
  const ac = open()
  ac.workflows.register(counter)
  await ac.workflows.execute(counter, { id: 'a' }, { inputId: 'old' })
  await sql.query(`update aftercommit.workflow_inputs set at = at - interval '8 days'`)
  await ac.workflows.execute(counter, { id: 'a' }, { inputId: 'new' })
  await ac.upkeep()
  await eventually(async () => (await rows('workflow_inputs')) === 1)
  expect(await rows('workflow_inputs', `input_id = 'new'`)).toBe(1)
})

it('an input that an event brought is remembered as long as the log keeps the event, so a seek counts it once', async () => {
  const { open, sql, rows } = await openWorkflows()
  await makePartitionsSmall(sql)
  const ac = open({ log: { retention: '1s' } })
  await ac.migrate()
  const tally = defineWorkflow({
    type: 'tally',
    id: ({ id }: { id: string; end?: boolean }) => id,
    initial: () => ({ count: 0, ended: false }),
    evolve: ({ count }, { type }: { type: 'counted' | 'ended' }) => ({ count: count + 1, ended: type === 'ended' }),
    decide: (_, { end }) => accept([{ type: end ? 'ended' : 'counted' }]),
    isTerminal: ({ ended }) => ended,
    on: { 'lamp.lit': ({ aggregateId }) => ({ id: aggregateId! }) },
  })
  ac.workflows.register(tally, { from: 'start' })
  await ac.start()
  const emitted = await ac.transaction((tx) =>
    tx.emit([1, 2, 3].map(() => ({ type: 'lamp.lit', aggregate: { type: 'lamp', id: 'a' }, payload: null }))),
  )
  const handle = ac.subscriptions.get('workflow:tally')
  const passed = () => eventually(async () => (await handle.status()).position >= emitted.at(-1)!.position)
  await passed()
  await sql.query(`update aftercommit.workflow_inputs set at = at - interval '8 days'`)
  await ac.upkeep()
  await handle.seek('start')
  await passed()
  expect(await ac.workflows.query(tally, 'a')).toMatchObject({ version: 3, state: { count: 3 } })

  // Its partition goes, and the input with it.
  await ac.workflows.execute(tally, { id: 'a', end: true })
  for (let n = 0; n < 4; n++) {
    await sql.query(`select aftercommit.emit('lamp.dimmed', null, null, null) from generate_series(1, 60)`)
    await ac.upkeep()
  }
  await eventually(async () => {
    await ac.upkeep()
    return (await rows('workflow_inputs')) === 0
  })
  expect(await rows('events', `type = 'lamp.lit'`)).toBe(0)
})

it('the log is kept as far back as an instance that is not over needs it', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  ac.workflows.register(counter)
  await ac.workflows.execute(counter, { id: 'a' })
  await ac.emitNow(sql, 'some.thing', { payload: null })
  await ac.workflows.execute(counter, { id: 'b' })
  const { rows } = await sql.query('select needed_after::int from aftercommit.workflow_instances order by id')
  expect(rows).toEqual([{ needed_after: 0 }, { needed_after: 2 }])
})
