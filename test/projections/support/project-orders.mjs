// A program that keeps a projection until it is killed. With a second argument it stands still while it folds that event,
// heartbeat and all. Usage: node project-orders.mjs <url> [event id]
import { createAftercommit } from 'aftercommit'
import { applyOrder } from './orders.mjs'

const [url, last] = process.argv.slice(2)
const ac = createAftercommit({ database: url })
ac.project({
  id: 'projection:orders',
  batchSize: 10,
  retry: { maxAttempts: 100 },
  apply(state, event) {
    console.log(`folded ${event.id}`)
    if (event.id === last) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000)
    return applyOrder(state, event)
  },
})
await ac.start()
console.log('started')
