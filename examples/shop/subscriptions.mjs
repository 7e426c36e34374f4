/** What follows from an order. Both remember how far they got, over restarts and over machines. */
export function subscribe(ac, screen) {
  // A read model. The table and the checkpoint move in one transaction: no order is counted twice, whatever crashes when.
  ac.subscribe({
    id: 'projection:sales',
    on: ['order.placed'],
    transactional: true,
    handle: (event, { tx }) =>
      tx.query(
        `insert into sales (customer, orders, total) values ($1, 1, $2)
         on conflict (customer) do update set orders = sales.orders + 1, total = sales.total + excluded.total`,
        [event.payload.customer, event.payload.total],
      ),
  })

  // Something outside of the database. The courier is not always in: the event is tried again, others do not wait for it.
  ac.subscribe({
    id: 'courier',
    on: ['order.shipped'],
    concurrency: 4,
    retry: { maxAttempts: 5, initialDelay: '300ms', maxDelay: '2s' },
    handle: (event, { attempt }) => {
      if (Math.random() < 0.15) throw new Error('the courier does not answer')
      if (attempt > 1) screen.note(`courier took order ${event.aggregateId} at attempt ${attempt}`)
    },
  })
}
