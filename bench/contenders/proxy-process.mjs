/** A database far away: a proxy that hands on every piece of data after half of a round trip, in order. */
import { connect, createServer } from 'node:net'
import { readConfig, serve } from './child.mjs'

const { dial } = readConfig()
let oneWayMs = 0

const server = createServer((client) => {
  const upstream = connect(dial)
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ]) {
    from.setNoDelay(true)
    from.on('data', (chunk) => later(() => to.write(chunk)))
    from.on('end', () => later(() => to.end()))
    from.on('error', () => to.destroy())
    from.on('close', () => later(() => to.destroy()))
  }
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

/** Timers of one length end in the order in which they began. */
function later(work) {
  if (oneWayMs === 0) work()
  else setTimeout(work, oneWayMs)
}

serve({
  port: () => server.address().port,
  /** To be called while nothing is on its way. */
  setRoundTrip(ms) {
    oneWayMs = ms / 2
  },
})
