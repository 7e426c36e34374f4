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

  // A captured table: `changes` says what is different, and the shop fills up its shelf by plain SQL.
  ac.subscribe({
    id: 'shelf',
    on: ['stock.updated'],
    from: 'head',
    handle: ({ payload, changes }) => {
      const { old, new: now } = changes.units
      if (now > old) screen.note(`the shelf of ${payload.product}s was filled up: ${now}`)
      else if (now <= 3) screen.note(`${now} ${payload.product}s are left`)
    },
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
