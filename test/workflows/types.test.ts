import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  accept,
  defineWorkflow,
  after as later,
  type Outcome,
  reject,
  type Workflow,
  type Workflows,
} from '../../src/index.ts'
import { type Event, fulfilment, type Rejection } from './support/fulfilment.ts'

describe('the types of a workflow', () => {
  it('are inferred: state, input, event, effect and rejection', () => {
    const door = defineWorkflow({
      type: 'door',
      id: (input: { id: string; type: 'open' | 'close' }) => input.id,
      initial: () => ({ open: false }),
      evolve: (_, event: { type: 'opened' } | { type: 'closed'; by: string }) => ({ open: event.type === 'opened' }),
      decide(state, { id, type }) {
        if (state.open === (type === 'open')) return reject('is so already')
        return type === 'open'
          ? accept([{ type: 'opened' }], { timers: [later('1h', { id, type: 'close' })] })
          : accept([{ type: 'closed', by: 'hand' }], { effects: [{ type: 'lock', id }] })
      },
    })
    type Parts = typeof door extends Workflow<infer S, infer I, infer E, infer F, infer R> ? [S, I, E, F, R] : never
    expectTypeOf<Parts[0]>().toEqualTypeOf<{ open: boolean }>()
    expectTypeOf<Parts[1]>().toEqualTypeOf<{ id: string; type: 'open' | 'close' }>()
    expectTypeOf<Parts[3]>().toEqualTypeOf<{ readonly type: 'lock'; readonly id: string }>()
    expectTypeOf<Parts[4]>().toEqualTypeOf<'is so already'>()
    expect(door.type).toBe('door')
  })

  it('make an accept without events and a reject with effects impossible', () => {
    // @ts-expect-error: at least one event
    accept([])
    // @ts-expect-error: a rejection leads to nothing
    reject('no', { effects: [] })
    // @ts-expect-error: nor does it grow anything later
    reject('no').effects
    expect(reject('no')).toEqual({ accepted: false, reason: 'no' })
  })

  it('reach the outcome, the handlers of effects and the inputs they return', () => {
    const use = (workflows: Workflows) => {
      expectTypeOf(workflows.execute(fulfilment, { type: 'ship', orderId: '1' })).toEqualTypeOf<
        Promise<Outcome<Event, Rejection>>
      >()
      workflows.register(fulfilment, {
        effects: {
          charge: ({ orderId, total }) => ({ type: 'paid', orderId, by: String(total) }),
          notify: { handle: async () => {}, retry: { maxAttempts: 2 } },
        },
      })
      workflows.register(fulfilment, { effects: { charge: 'elsewhere', notify: async () => {} } })
      workflows.register(fulfilment, {
        // @ts-expect-error: every effect has a handler, or is said to be done elsewhere
        effects: { charge: 'elsewhere' },
      })
      workflows.register(fulfilment, {
        effects: {
          charge: 'elsewhere',
          // @ts-expect-error: not an input of this workflow
          notify: () => ({ type: 'unknown', orderId: '1' }),
        },
      })
      // @ts-expect-error: not an input of this workflow
      return workflows.execute(fulfilment, { type: 'unknown', orderId: '1' })
    }
    expect(use).toBeTypeOf('function')
  })
})
