// A program that counts events in Postgres through a transactional, idempotent handler, and says so. With a third argument
// it hangs in front of the commit of that event. Usage: node count-events.mjs <url> <subscription> [event id]
import { createAftercommit, idempotent } from 'aftercommit'

const [url, id, deadly] = process.argv.slice(2)
const ac = createAftercommit({ database: url })
ac.subscribe({
  id,
  transactional: true,
  retry: { maxAttempts: 100 },
  handle: idempotent(async (event, { tx }) => {
    await tx.query('insert into counted (subscription, key, event_id) values ($1, $2, $3)', [id, event.key, event.id])
    await tx.query(
      `insert into counts (subscription, key, n) values ($1, $2, 1)
       on conflict (subscription, key) do update set n = counts.n + 1`,
      [id, event.key],
    )
    console.log(`wrote ${event.id}`)
    if (event.id === deadly) await new Promise(() => setInterval(() => {}, 60_000))
  }),
})
await ac.start()
console.log('started')
