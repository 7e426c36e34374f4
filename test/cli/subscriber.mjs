// A program with two subscriptions, to be looked at and moved about from outside. `mail:receipts` fails for every event
// whose payload says so, until it is told `mend`. Usage: node subscriber.mjs <url>
import { createInterface } from 'node:readline'
import { createAftercommit } from 'aftercommit'

const [url] = process.argv.slice(2)
const ac = createAftercommit({ database: url })
let isMended = false
ac.subscribe({
  id: 'mail:receipts',
  on: ['order.placed', 'order.paid'],
  retry: { maxAttempts: 2, initialDelay: '1ms', maxDelay: '1ms' },
  handle(event) {
    if (event.payload.fails && !isMended) {
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:25'), { code: 'ECONNREFUSED' })
    }
    console.log(`mailed ${event.id}`)
  },
})
ac.subscribe({ id: 'projection:sales', on: ['order.*'], handle: (event) => console.log(`counted ${event.id}`) })
await ac.start()
console.log('started')
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'mend') isMended = true
  console.log(`did ${line}`)
}
