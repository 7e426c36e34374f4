/** Works off a backlog in a process of its own and tells how long it took and how much memory. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createAftercommit } from 'aftercommit'

const [url, schema, wanted, handlerMs] = process.argv.slice(2)
const count = Number(wanted)
const ac = createAftercommit({ database: url, schema })
const megabytes = () => Math.round(process.memoryUsage.rss() / 2 ** 20)
let seen = 0
let early = 0
let most = 0
const began = performance.now()
const handled = new Promise((resolve) => {
  ac.subscribe({
    id: `backlog-${process.pid}`,
    handle: (event) => {
      seen++
      if (seen % 10_000 === 0) most = Math.max(most, megabytes())
      if (seen === Math.floor(count / 10)) early = megabytes()
      if (seen === count) resolve(event)
      return handlerMs === '0' ? undefined : sleep(Number(handlerMs))
    },
  })
})
await ac.start()
await handled
process.send({
  seconds: (performance.now() - began) / 1_000,
  early,
  late: megabytes(),
  most: Math.max(most, megabytes()),
})
await ac.stop()
process.disconnect()
