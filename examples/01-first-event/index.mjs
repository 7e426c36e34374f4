// Places one order and reads the log from its start until that order has come by. Run it twice: the log remembers.
// #region main
import { randomUUID } from 'node:crypto'
import { createAftercommit, defineEvents } from 'aftercommit'
import { z } from 'zod'

const events = defineEvents({ 'order.placed': z.object({ total: z.number() }) })
const ac = createAftercommit({ events, database: process.env.DATABASE_URL }) // none: the embedded Postgres
await ac.migrate()
await ac.start()

const id = randomUUID()
await ac.transaction(async (tx) => {
  await tx.query('create table if not exists orders (id text primary key, total integer not null)')
  await tx.query('insert into orders (id, total) values ($1, $2)', [id, 90])
  await tx.emit('order.placed', { aggregate: { type: 'order', id }, payload: { total: 90 } })
}) // rolled back = never happened

for await (const event of ac.log.tail({ from: 'start', on: ['order.*'] })) {
  console.log(`${event.position}: order ${event.aggregateId} over ${event.payload.total}`)
  if (event.aggregateId === id) break
}
await ac.stop()
// #endregion
