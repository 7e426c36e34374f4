// Places one order and reacts to it after the commit. Run it twice: the subscription remembers how far it got.
// #region main
import { randomUUID } from 'node:crypto'
import { createAftercommit, defineEvents } from 'aftercommit'
import { z } from 'zod'

const events = defineEvents({ 'order.placed': z.object({ total: z.number() }) })
const ac = createAftercommit({ events, database: process.env.DATABASE_URL }) // none: the embedded Postgres
await ac.migrate()

ac.subscribe({
  id: 'receipts',
  on: ['order.*'],
  handle: (event) =>
    console.log(`${event.position}: receipt for order ${event.aggregateId} over ${event.payload.total}`),
})

const id = randomUUID()
await ac.transaction(async (tx) => {
  await tx.query('create table if not exists orders (id text primary key, total integer not null)')
  await tx.query('insert into orders (id, total) values ($1, $2)', [id, 90])
  await tx.emit('order.placed', { aggregate: { type: 'order', id }, payload: { total: 90 } })
}) // rolled back = never happened

await ac.drain() // a server would call ac.start() and go on
await ac.stop()
// #endregion
