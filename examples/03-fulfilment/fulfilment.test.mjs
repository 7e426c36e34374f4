import { it } from 'node:test'
import { after } from 'aftercommit'
import { given } from 'aftercommit/testing'
import { defineFulfilment } from './fulfilment.mjs'

const fulfilment = defineFulfilment()
const orderId = '7'
const place = { type: 'place', orderId, cartId: 'c1', total: 90 }
const placed = { type: 'placed', total: 90, cartId: 'c1' }
const paid = { type: 'paid', paymentId: 'p1' }
const refund = { type: 'refund', orderId, paymentId: 'p1', total: 90 }

it('asks for the money, and arms a reminder and a deadline', () => {
  given(fulfilment)
    .when(place)
    .then({
      events: [placed],
      effects: [{ type: 'ask_payment', orderId, total: 90 }],
      timers: [
        after('1h', { type: 'remind', orderId }, { key: 'reminder' }),
        after('24h', { type: 'give_up', orderId }, { key: 'deadline' }),
      ],
    })
})

it('reminds once, then gives up', () => {
  given(fulfilment)
    .when(place)
    .then({ events: [placed] })
    .whenTimePasses('2h')
    .then({ events: [{ type: 'reminded' }], effects: [{ type: 'send_reminder', orderId }] })
    .whenTimePasses('22h')
    .then({ events: [{ type: 'cancelled', why: 'not paid in time' }], completed: true })
})

it('ships what was paid, and forgets the deadline', () => {
  given(fulfilment)
    .when(place)
    .then({ outcome: 'accepted' })
    .whenDone({ type: 'ask_payment', orderId, total: 90 }, { type: 'pay', orderId, paymentId: 'p1' })
    .then({ events: [paid], effects: [{ type: 'reserve', orderId }], cancelled: ['reminder', 'deadline'] })
    .whenTimePasses('100d')
    .then({ events: [] })
    .whenDone({ type: 'reserve', orderId }, { type: 'reserved', orderId })
    .then({ events: [{ type: 'reserved' }], effects: [{ type: 'ship', orderId }] })
    .whenDone({ type: 'ship', orderId }, { type: 'shipped', orderId, parcel: 'x' })
    .then({ events: [{ type: 'shipped', parcel: 'x' }], completed: true })
})

it('gives the money back when there is nothing to send', () => {
  given(fulfilment, [placed, paid])
    .when({ type: 'out_of_stock', orderId })
    .then({ events: [{ type: 'reservation_failed' }], effects: [refund] })
    .whenDone(refund, { type: 'refunded', orderId })
    .then({ events: [{ type: 'cancelled', why: 'refunded' }], completed: true })
})

it('gives goods and money back when the courier never came', () => {
  given(fulfilment, [placed, paid])
    .when({ type: 'reserved', orderId })
    .then({ effects: [{ type: 'ship', orderId }] })
    .whenDead({ type: 'ship', orderId })
    .then({ events: [{ type: 'shipment_failed' }], effects: [{ type: 'release', orderId }, refund] })
})

it('does not cancel what was paid, and takes nothing when it is over', () => {
  const cancel = { type: 'cancel', orderId }
  given(fulfilment, [placed, paid]).when(cancel).then({ rejected: 'an order that is paid cannot cancel' })
  given(fulfilment, [placed])
    .when(cancel)
    .then({ events: [{ type: 'cancelled', why: 'by the customer' }] })
    .when({ type: 'pay', orderId, paymentId: 'p2' })
    .then({ outcome: 'completed' })
})
