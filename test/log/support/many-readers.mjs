// A process with many subscriptions, each of which handles all events of the log. Usage: node many-readers.mjs <json>: url,
// readers, events. No handler ends before each subscription has begun its first event: until then all hold what they have read.
import { createAftercommit } from '../../../dist/index.js'

const { url, readers, events } = JSON.parse(process.argv[2])
const ac = createAftercommit({ database: url })
const begun = new Set()
let release
const all = new Promise((resolve) => {
  release = resolve
})
let left = readers * events

for (let n = 0; n < readers; n++) {
  ac.subscribe({
    id: `reader-${n}`,
    from: 'start',
    async handle() {
      if (begun.add(n).size === readers) release()
      await all
      left--
      if (left > 0) return
      const { log } = await ac.status()
      console.log(JSON.stringify({ handled: readers * events, memory: log.memory }))
      process.exit()
    },
  })
}
await ac.start()
