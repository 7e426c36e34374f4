// Four orders with four ends: one is shipped, one is sold out, one cannot be delivered, one is never paid. Payments, stock
// and the courier are played by a few lines; what holds it together is the workflow in fulfilment.mjs.
import { randomUUID } from 'node:crypto'
import { createAftercommit, GiveUp } from 'aftercommit'
import { defineFulfilment } from './fulfilment.mjs'

const fulfilment = defineFulfilment({ remindAfter: '500ms', giveUpAfter: '3s' })
const ac = createAftercommit({ database: process.env.DATABASE_URL }) // none: the embedded Postgres
await ac.migrate()

// What is to be done in the world. A handler may be called again after a crash: `idempotencyKey` stays the same.
ac.workflows.register(fulfilment, {
  effects: {
    ask_payment: ({ orderId }, { idempotencyKey }) =>
      kindOf(orderId) === 'forgotten' ? undefined : { type: 'pay', orderId, paymentId: idempotencyKey },
    send_reminder: async ({ orderId }) => console.log(`${kindOf(orderId)}: please pay`),
    reserve: ({ orderId }) => ({ type: kindOf(orderId) === 'sold out' ? 'out_of_stock' : 'reserved', orderId }),
    ship({ orderId }) {
      if (kindOf(orderId) === 'far away') throw new GiveUp('no courier goes there')
      return { type: 'shipped', orderId, parcel: `parcel of ${orderId}` }
    },
    release: async ({ orderId }) => console.log(`${kindOf(orderId)}: back into stock`),
    refund: ({ orderId }) => ({ type: 'refunded', orderId }),
  },
})

// A history is a stream in the log like any other: whoever wants to know subscribes.
const kinds = ['ordinary', 'sold out', 'far away', 'forgotten']
const open = new Set(kinds)
const { promise: allOver, resolve } = withResolvers()
ac.subscribe({
  id: 'screen',
  on: ['fulfilment.*'],
  from: 'head',
  handle({ aggregateId, type, payload }) {
    console.log(`${kindOf(aggregateId)}: ${type.replace('fulfilment.', '')}${payload.why ? `, ${payload.why}` : ''}`)
    if (payload.type === 'shipped' || payload.type === 'cancelled') open.delete(kindOf(aggregateId))
    if (open.size === 0) resolve()
  },
})

await ac.start()
for (const kind of kinds) {
  const orderId = `${kind}/${randomUUID()}`
  await ac.workflows.execute(fulfilment, { type: 'place', orderId, cartId: orderId, total: 90 })
}
await allOver
await ac.stop()

function kindOf(orderId) {
  return orderId.split('/')[0]
}

function withResolvers() {
  let resolve
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
