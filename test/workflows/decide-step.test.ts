import { describe, expect, it } from 'vitest'
import { type Accept, accept, at, defineWorkflow, after as later, reject } from '../../src/index.ts'
import { decideStep, isSnapshotDue } from '../../src/workflows/decide-step.ts'
import { fulfilment, options } from './support/fulfilment.ts'

const instance = { type: 'fulfilment', id: '42' }
const now = new Date('2026-01-02T03:04:05.678Z')

describe('a step', () => {
  it('is events, the state after them, effects, and timers with the time they are due', () => {
    const step = decideStep(fulfilment, instance, options.initial(), { type: 'place', orderId: '42', total: 9 }, now)
    expect(step).toMatchObject({
      outcome: 'accepted',
      events: [{ event: { type: 'placed', total: 9, at: now.toISOString() } }],
      state: { status: 'placed', total: 9 },
      completed: false,
      effects: [{ type: 'charge', orderId: '42', total: 9 }],
      timers: [{ key: 'reminder', dueMs: now.getTime() + 86_400_000 }],
    })
  })

  it('that is rejected is the reason and nothing else', () => {
    const step = decideStep(fulfilment, instance, options.initial(), { type: 'ship', orderId: '42' }, now)
    expect(step).toEqual({ outcome: 'rejected', reason: { why: 'not_paid' } })
  })

  it('sees events as they will be read again, so that a replay finds the same state', () => {
    const dated = defineWorkflow({
      type: 'dated',
      id: (input: { id: string }) => input.id,
      initial: () => ({ at: undefined as unknown }),
      evolve: (_, event: { type: 'noted'; at: unknown }) => ({ at: event.at }),
      decide: (_state, _input, context) => accept([{ type: 'noted', at: context.now }]),
    })
    const step = decideStep(dated, { type: 'dated', id: 'a' }, dated.initial(), { id: 'a' }, now)
    expect(step).toMatchObject({ outcome: 'accepted', state: { at: now.toISOString() } })
  })

  it('continues as new within one step, from the initial state on', () => {
    const paid = { ...options.initial(), status: 'paid' as const, reminders: 3 }
    const step = decideStep(fulfilment, instance, paid, { type: 'again', orderId: '42', total: 7 }, now)
    expect(step).toMatchObject({
      continuesAfter: 1,
      state: { status: 'placed', total: 7, reminders: 0 },
      completed: false,
    })
  })
})

describe('a decision is refused', () => {
  const decides = (decision: () => unknown) =>
    defineWorkflow({
      type: 'odd',
      id: (input: { id: string }) => input.id,
      initial: () => 0,
      evolve: (state: number, _: { type: 'e' }) => state + 1,
      decide: decision as () => Accept<{ type: 'e' }, never, { id: string }>,
    })
  const decide = (decision: () => unknown) => () =>
    decideStep(decides(decision), { type: 'odd', id: 'a' }, 0, { id: 'a' }, now)

  it.each([
    ['without an event', () => ({ ...accept([{ type: 'e' }]), events: [] }), 'without an event'],
    ['that is none', () => undefined, 'neither accept(…) nor reject(…)'],
    [
      'with two timers of one key',
      () =>
        accept([{ type: 'e' }], {
          timers: [later('1s', { id: 'a' }, { key: 'k' }), later('2s', { id: 'a' }, { key: 'k' })],
        }),
      'two timers with the key "k"',
    ],
    [
      'with a timer at no time',
      () => accept([{ type: 'e' }], { timers: [at(new Date(Number.NaN), { id: 'a' })] }),
      'a time that is none',
    ],
    [
      'that continues as new for ever',
      () => accept([{ type: 'e' }], { continueAsNew: { id: 'a' } }),
      'continued as new twice',
    ],
  ])('%s', (_, decision, message) => {
    expect(decide(decision)).toThrow(
      expect.objectContaining({ code: 'BAD_DECISION', message: expect.stringContaining(message) }),
    )
  })

  it('when it changes the state instead of returning another', () => {
    const impure = defineWorkflow({
      type: 'impure',
      id: (input: { id: string }) => input.id,
      initial: () => ({ count: 0 }),
      evolve(state, _: { type: 'counted' }) {
        state.count++
        return state
      },
      decide: () => accept([{ type: 'counted' }, { type: 'counted' }]),
    })
    expect(() => decideStep(impure, { type: 'impure', id: 'a' }, { count: 0 }, { id: 'a' }, now)).toThrow(TypeError)
  })
})

describe('a definition is refused', () => {
  it.each([
    [{ type: 'Order Flow' }, 'lower-case words'],
    [{ type: 'aftercommit.x' }, 'reserved'],
    [{ isTerminal: undefined }, '`uniqueKey` needs `isTerminal`'],
    [{ decide: undefined }, '`decide` must be a function'],
    [{ on: { 'Order Placed': () => undefined } }, 'not the name of an event'],
    [{ events: { placed: { version: 3, upcast: { 1: (x: unknown) => x } } } }, 'no upcast step 2'],
    [{ snapshots: { every: -1 } }, 'snapshots.every'],
  ])('%o', (changes, message) => {
    expect(() => defineWorkflow({ ...options, ...changes } as never)).toThrow(
      expect.objectContaining({ code: 'BAD_DEFINITION', message: expect.stringContaining(message) }),
    )
  })
})

it('a snapshot is due when a multiple is reached or passed', () => {
  expect([isSnapshotDue(9, 10, 10), isSnapshotDue(9, 12, 10), isSnapshotDue(10, 19, 10)]).toEqual([true, true, false])
  expect(isSnapshotDue(99, 100, 0)).toBe(false)
  expect(reject('x').accepted).toBe(false)
})
