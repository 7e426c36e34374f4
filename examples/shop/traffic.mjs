import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const customers = ['Ada', 'Grace', 'Edsger', 'Barbara', 'Niklaus', 'Radia']

/** Places orders until told to stop: about one and a half per second, each with its own life. */
export async function placeOrders(ac, signal) {
  while (!signal.aborted) {
    await placeOrder(ac).catch(ignorePaymentRefused)
    await pause(400 + Math.random() * 500, signal)
  }
}

/** The order and its event are one transaction: both are there, or neither. */
export async function placeOrder(ac) {
  const id = randomUUID().slice(0, 8)
  const aggregate = { type: 'order', id }
  const customer = pick(customers)
  const total = 500 + Math.floor(Math.random() * 20_000)
  await ac.transaction(async (tx) => {
    await tx.query('insert into orders (id, customer, total) values ($1, $2, $3)', [id, customer, total])
    await tx.emit('order.placed', { aggregate, payload: { customer, total }, expectedVersion: 0 })
    // No event is emitted for it: the table is captured.
    await tx.query('update stock set units = case units when 1 then 20 else units - 1 end where product = $1', [
      pick(['mug', 'shirt', 'poster']),
    ])
    if (Math.random() < 0.1) throw new PaymentRefused()
    await tx.emit('order.paid', { aggregate, payload: { method: pick(['card', 'transfer']) } })
  })
  if (Math.random() < 0.6) {
    await ac.transaction((tx) =>
      tx.emit('order.shipped', { aggregate, payload: { carrier: pick(['bike', 'train', 'ship']) } }),
    )
  }
  return id
}

class PaymentRefused extends Error {}

function ignorePaymentRefused(error) {
  if (!(error instanceof PaymentRefused)) throw error
}

function pick(list) {
  return list[Math.floor(Math.random() * list.length)]
}

async function pause(ms, signal) {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
