/** An order in small: an effect that answers, a reminder that repeats, a deadline, an end. */
import { accept, after, defineWorkflow, reject } from '../../../src/workflows/index.ts'

export type OrderState =
  | { readonly status: 'new' }
  | { readonly status: 'unpaid' | 'paid' | 'closed'; readonly total: number; readonly reminders: number }
export type OrderInput =
  | { readonly type: 'place'; readonly id: string; readonly total: number }
  | { readonly type: 'pay' | 'remind' | 'expire' | 'ship' | 'charge_failed'; readonly id: string }
  | { readonly type: 'again'; readonly id: string; readonly total: number }
export type OrderEvent =
  | { readonly type: 'placed'; readonly total: number; readonly note?: string | undefined }
  | { readonly type: 'paid' | 'reminded' | 'expired' | 'shipped' }
export type OrderEffect = { readonly type: 'charge'; readonly total: number } | { readonly type: 'mail' }

export const order = defineWorkflow<OrderState, OrderInput, OrderEvent, OrderEffect, string>({
  type: 'order',
  id: ({ id }) => id,
  initial: () => ({ status: 'new' }),
  uniqueKey: (input) => (input.type === 'place' ? `total ${input.total}` : undefined),
  isTerminal: ({ status }) => status === 'closed',
  evolve(state, event) {
    if (event.type === 'placed') return { status: 'unpaid', total: event.total, reminders: 0 }
    if (state.status === 'new') return state
    if (event.type === 'reminded') return { ...state, reminders: state.reminders + 1 }
    return { ...state, status: event.type === 'paid' ? 'paid' : 'closed' }
  },
  decide(state, input) {
    const { id } = input
    const reminder = after('1h', { type: 'remind', id }, { key: 'reminder' })
    switch (`${state.status} ${input.type}`) {
      case 'new place': {
        const { total } = input as { total: number }
        return accept([{ type: 'placed', total, note: undefined }], {
          effects: [{ type: 'charge', total }],
          timers: [reminder, after('3h', { type: 'expire', id }, { key: 'deadline' })],
        })
      }
      case 'unpaid remind':
        return accept([{ type: 'reminded' }], { effects: [{ type: 'mail' }], timers: [reminder] })
      case 'unpaid pay':
        return accept([{ type: 'paid' }], { cancelTimers: ['reminder', 'deadline'] })
      case 'unpaid expire':
      case 'unpaid charge_failed':
        return accept([{ type: 'expired' }])
      case 'paid ship':
        return accept([{ type: 'shipped' }])
      case 'paid again':
        return accept([{ type: 'shipped' }], {
          continueAsNew: { type: 'place', id, total: (input as { total: number }).total },
        })
      default:
        return reject(`${state.status} cannot ${input.type}`)
    }
  },
  onDeadLetter: (letter) =>
    letter.kind === 'effect' && letter.effect.type === 'charge'
      ? { type: 'charge_failed', id: letter.workflow.id }
      : undefined,
})
