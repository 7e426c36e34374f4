/** An order on its way: placed, paid, shipped or given up. Small, and with one of everything. */
import { accept, after, defineWorkflow, reject } from '../../../src/index.ts'

export type Input =
  | { type: 'place'; orderId: string; total: number; key?: string }
  | { type: 'paid'; orderId: string; by: string }
  | { type: 'remind'; orderId: string }
  | { type: 'ship'; orderId: string }
  | { type: 'failed'; orderId: string; code: string }
  | { type: 'again'; orderId: string; total: number }

export type Event =
  | { type: 'placed'; total: number; at: string }
  | { type: 'payment_received'; by: string }
  | { type: 'reminded' }
  | { type: 'shipped' }
  | { type: 'given_up'; code: string }

export type Effect = { type: 'charge'; orderId: string; total: number } | { type: 'notify'; orderId: string }

export interface State {
  readonly status: 'new' | 'placed' | 'paid' | 'shipped' | 'given_up'
  readonly total: number
  readonly reminders: number
}

export type Rejection = { why: 'not_placed' | 'placed_already' | 'not_paid' }

export const options = {
  type: 'fulfilment',
  id: (input: Input) => input.orderId,
  initial: (): State => ({ status: 'new', total: 0, reminders: 0 }),
  evolve(state: State, event: Event): State {
    switch (event.type) {
      case 'placed':
        return { ...state, status: 'placed', total: event.total }
      case 'payment_received':
        return { ...state, status: 'paid' }
      case 'reminded':
        return { ...state, reminders: state.reminders + 1 }
      case 'shipped':
        return { ...state, status: 'shipped' }
      case 'given_up':
        return { ...state, status: 'given_up' }
    }
  },
  decide(state: State, input: Input, { now }: { now: Date }) {
    switch (input.type) {
      case 'place':
        if (state.status !== 'new') return reject<Rejection>({ why: 'placed_already' })
        return accept([{ type: 'placed', total: input.total, at: now.toISOString() }], {
          effects: [{ type: 'charge', orderId: input.orderId, total: input.total }],
          timers: [after('24h', { type: 'remind', orderId: input.orderId }, { key: 'reminder' })],
        })
      case 'paid':
        if (state.status !== 'placed') return reject<Rejection>({ why: 'not_placed' })
        return accept([{ type: 'payment_received', by: input.by }], {
          cancelTimers: ['reminder'],
        })
      case 'remind':
        if (state.status !== 'placed') return reject<Rejection>({ why: 'not_placed' })
        return accept([{ type: 'reminded' }], {
          effects: [{ type: 'notify', orderId: input.orderId }],
          timers: [after('24h', { type: 'remind', orderId: input.orderId }, { key: 'reminder' })],
        })
      case 'ship':
        if (state.status !== 'paid') return reject<Rejection>({ why: 'not_paid' })
        return accept([{ type: 'shipped' }])
      case 'failed':
        return accept([{ type: 'given_up', code: input.code }])
      case 'again':
        return accept([{ type: 'shipped' }], {
          continueAsNew: { type: 'place', orderId: input.orderId, total: input.total },
        })
    }
  },
  isTerminal: (state: State) => state.status === 'shipped' || state.status === 'given_up',
  uniqueKey: (input: Input) => (input.type === 'place' ? input.key : undefined),
}

export const fulfilment = defineWorkflow<State, Input, Event, Effect, Rejection>(options)

/** Counts, and nothing else: for what happens a hundred times. */
export const counter = defineWorkflow({
  type: 'counter',
  id: (input: { id: string; by?: number }) => input.id,
  initial: () => ({ count: 0, events: 0 }),
  evolve: (state, event: { type: 'counted'; by: number }) => ({
    count: state.count + event.by,
    events: state.events + 1,
  }),
  decide: (_, { by = 1 }) => accept([{ type: 'counted', by }]),
})
