// A workflow: a parcel is packed when its order is paid, and somebody is reminded of what was not shipped in time. Nothing
// here talks to the world: packing is an effect, and the reminder is a timer.
import { accept, after, defineWorkflow, reject } from 'aftercommit'

export const parcel = defineWorkflow({
  type: 'parcel',
  id: ({ order }) => order,
  initial: () => ({ status: 'new' }),
  isTerminal: ({ status }) => status === 'sent',
  evolve: (state, { type }) => ({ status: type === 'reminded' ? state.status : type }),
  decide(state, { type, order }) {
    switch (`${state.status} ← ${type}`) {
      case 'new ← pack':
        return accept([{ type: 'begun' }], {
          effects: [{ type: 'print_label', order }],
          timers: [after('30s', { type: 'remind', order }, { key: 'reminder' })],
        })
      case 'begun ← label_printed':
        return accept([{ type: 'packed' }])
      case 'packed ← send':
        return accept([{ type: 'sent' }])
      case 'packed ← remind':
        return accept([{ type: 'reminded' }])
      default:
        return reject(`a parcel that is ${state.status} does not ${type}`)
    }
  },
  on: {
    'order.paid': ({ aggregateId }) => ({ type: 'pack', order: aggregateId }),
    'order.shipped': ({ aggregateId }) => ({ type: 'send', order: aggregateId }),
  },
})

export const parcelEffects = {
  print_label: async ({ order }) => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return { type: 'label_printed', order }
  },
}
