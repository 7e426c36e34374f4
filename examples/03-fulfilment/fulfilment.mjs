// What becomes of an order, as a table of states and inputs. Nothing here talks to anybody: what is to be done in the
// world is an effect, and what came of it comes back as an input.
import { accept, after, defineWorkflow, reject } from 'aftercommit'

/** Durations are options so that a demonstration need not take a day. */
export function defineFulfilment({ remindAfter = '1h', giveUpAfter = '24h' } = {}) {
  return defineWorkflow({
    type: 'fulfilment',
    id: (input) => input.orderId,
    // One open order per cart: whoever clicks twice hears of the first.
    uniqueKey: (input) => (input.type === 'place' ? input.cartId : undefined),
    initial: () => ({ status: 'new' }),
    isTerminal: ({ status }) => status === 'shipped' || status === 'cancelled',
    evolve,
    decide(state, input) {
      const orderId = input.orderId
      switch (`${state.status} ← ${input.type}`) {
        case 'new ← place':
          return accept([{ type: 'placed', total: input.total, cartId: input.cartId }], {
            effects: [{ type: 'ask_payment', orderId, total: input.total }],
            timers: [
              after(remindAfter, { type: 'remind', orderId }, { key: 'reminder' }),
              after(giveUpAfter, { type: 'give_up', orderId }, { key: 'deadline' }),
            ],
          })
        case 'unpaid ← remind':
          return accept([{ type: 'reminded' }], { effects: [{ type: 'send_reminder', orderId }] })
        case 'unpaid ← give_up':
          return accept([{ type: 'cancelled', why: 'not paid in time' }])
        case 'unpaid ← cancel':
          return accept([{ type: 'cancelled', why: 'by the customer' }])
        case 'unpaid ← pay':
          return accept([{ type: 'paid', paymentId: input.paymentId }], {
            effects: [{ type: 'reserve', orderId }],
            cancelTimers: ['reminder', 'deadline'],
          })
        case 'paid ← reserved':
          return accept([{ type: 'reserved' }], { effects: [{ type: 'ship', orderId }] })
        // The money must go back: what was done is not undone, it is made good.
        case 'paid ← out_of_stock':
          return accept([{ type: 'reservation_failed' }], { effects: [refund(orderId, state)] })
        case 'reserved ← shipped':
          return accept([{ type: 'shipped', parcel: input.parcel }])
        case 'reserved ← ship_failed':
          return accept([{ type: 'shipment_failed' }], {
            effects: [{ type: 'release', orderId }, refund(orderId, state)],
          })
        case 'refunding ← refunded':
          return accept([{ type: 'cancelled', why: 'refunded' }])
        default:
          return reject(`an order that is ${state.status} cannot ${input.type}`)
      }
    },
    // An effect that ran out of tries is news like any other.
    onDeadLetter: ({ kind, effect }) =>
      kind === 'effect' && effect.type === 'ship' ? { type: 'ship_failed', orderId: effect.orderId } : undefined,
  })
}

function evolve(state, event) {
  switch (event.type) {
    case 'placed':
      return { status: 'unpaid', total: event.total }
    case 'paid':
      return { ...state, status: 'paid', paymentId: event.paymentId }
    case 'reserved':
      return { ...state, status: 'reserved' }
    case 'reservation_failed':
    case 'shipment_failed':
      return { ...state, status: 'refunding' }
    case 'shipped':
      return { ...state, status: 'shipped' }
    case 'cancelled':
      return { ...state, status: 'cancelled', why: event.why }
    default:
      return state
  }
}

function refund(orderId, { paymentId, total }) {
  return { type: 'refund', orderId, paymentId, total }
}
