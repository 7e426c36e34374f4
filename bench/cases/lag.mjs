/** 24 writers that hold their transactions for about 10 ms, 15 % of them rolled back: how far behind is the reader? */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost } from '../goals.mjs'
import { connect, payload, percentile, withLog } from '../measure.mjs'

const writers = 24

export function run({ url, ms }) {
  return withLog(url, 'bench_lag', async (ac) => {
    await ac.start()
    const { clients, end } = await connect(url, writers)
    const committed = new Map()
    const arrived = new Map()
    const stopping = new AbortController()
    const reading = (async () => {
      for await (const event of ac.log.tail({ from: 'start', signal: stopping.signal }))
        arrived.set(event.id, performance.now())
    })()
    const until = performance.now() + Math.max(ms * 3, 6_000)
    await Promise.all(clients.map((client) => write(ac, client, until, committed)))
    const deadline = performance.now() + 10_000
    while (arrived.size < committed.size && performance.now() < deadline) await sleep(20)
    stopping.abort()
    await reading
    await end()
    const lost = [...committed.keys()].filter((id) => !arrived.has(id)).length
    const lags = [...committed].map(([id, at]) => Math.max(0, (arrived.get(id) ?? Number.POSITIVE_INFINITY) - at))
    return {
      title: `lag: ${writers} writers holding for ~10 ms, 15 % rolled back`,
      figures: [
        ['events', committed.size.toLocaleString('en')],
        ['lost', String(lost)],
        ['lag p50 / p99', `${percentile(lags, 0.5).toFixed(1)} / ${percentile(lags, 0.99).toFixed(1)} ms`],
      ],
      goals: [atMost('lag p50', percentile(lags, 0.5), 25, 'ms'), atMost('lost', lost, 0, 'events')],
    }
  })
}

async function write(ac, client, until, committed) {
  while (performance.now() < until) {
    await client.query('begin')
    const { id } = await ac.emitNow(client, 'order.placed', { payload })
    await sleep(5 + Math.random() * 10)
    if (Math.random() < 0.15) {
      await client.query('rollback')
    } else {
      await client.query('commit')
      committed.set(id, performance.now())
    }
  }
}
