/** An instance that serves a live feed in a process of its own, and tells what it has cost so far when asked. */
import { createServer } from 'node:http'
import { createAftercommit } from 'aftercommit'

const [url, schema] = process.argv.slice(2)
const ac = createAftercommit({ database: url, schema })
await ac.start()
const feed = ac.live.sse({ authorize: () => 'anybody' })
const server = createServer((req, res) => void feed.node(req, res))
server.listen({ port: 0, host: '127.0.0.1', backlog: 2_000 }, () => process.send({ port: server.address().port }))
process.on('message', async (question) => {
  if (question === 'usage') {
    const { user, system } = process.cpuUsage()
    process.send({
      cpuMs: (user + system) / 1_000,
      rss: process.memoryUsage.rss(),
      maxRss: process.resourceUsage().maxRSS * 1_024,
    })
  } else {
    await ac.stop()
    server.close()
    process.disconnect()
  }
})
