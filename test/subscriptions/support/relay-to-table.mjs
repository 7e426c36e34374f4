// A program that relays events into a table of its own, which stands for a bus, and says so. With a third argument it
// hangs once that event was accepted, in front of the checkpoint. Usage: node relay-to-table.mjs <url> <relay> [event id]
import { createAftercommit } from 'aftercommit'
import pg from 'pg'

const [url, id, last] = process.argv.slice(2)
const bus = new pg.Pool({ connectionString: url, max: 1 })
const ac = createAftercommit({ database: url })
ac.relay({
  id,
  batchSize: 10,
  to: {
    name: 'table',
    features: { ordered: true, persistent: true, deduplicating: false },
    async publish(messages) {
      const rows = JSON.stringify(messages.map((message) => ({ id: message.id, key: message.key })))
      await bus.query(
        `insert into published (id, key) select * from jsonb_to_recordset($1::jsonb) as (id text, key text)`,
        [rows],
      )
      for (const message of messages) console.log(`published ${message.id}`)
      if (messages.some((message) => message.id === last)) await new Promise(() => setInterval(() => {}, 60_000))
    },
  },
})
await ac.start()
console.log('started')
