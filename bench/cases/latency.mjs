/** Quiet system: from the answer to COMMIT until the reader has the event. Bare: INSERT with NOTIFY, then a listener. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost } from '../goals.mjs'
import { connect, payload, percentile, withLog } from '../measure.mjs'

const samples = 500

export function run({ url }) {
  return withLog(url, 'bench_latency', async (ac) => {
    await ac.start()
    const { clients, end } = await connect(url, 2)
    const library = await measureTail(ac, clients[0])
    const bare = await measureNotify(clients)
    await end()
    const show = (times) =>
      `${percentile(times, 0.5).toFixed(2)} / ${percentile(times, 0.99).toFixed(2)} ms (p50 / p99)`
    return {
      title: `latency: commit to reader, one event every 20 ms, ${samples} samples`,
      figures: [
        ['bare INSERT + NOTIFY, listener', show(bare)],
        ['aftercommit emit, ac.log.tail', show(library)],
      ],
      goals: [atMost('p50', percentile(library, 0.5), 2, 'ms'), atMost('p99', percentile(library, 0.99), 5, 'ms')],
    }
  })
}

async function measureTail(ac, client) {
  const arrived = new Map()
  const stopping = new AbortController()
  const reading = (async () => {
    for await (const event of ac.log.tail({ from: 'start', signal: stopping.signal }))
      arrived.set(event.id, performance.now())
  })()
  const committed = new Map()
  await ac.emitNow(client, 'order.placed', { payload })
  // The reader arms itself once the system has been quiet for a second.
  await sleep(2_500)
  for (let i = 0; i < samples; i++) {
    const { id } = await ac.emitNow(client, 'order.placed', { payload })
    committed.set(id, performance.now())
    await sleep(20)
  }
  await sleep(2_000)
  stopping.abort()
  await reading
  return [...committed].map(([id, at]) => Math.max(0, arrived.get(id) - at))
}

async function measureNotify([writer, listener]) {
  await writer.query('create table bench_latency.bare (id bigserial primary key, payload jsonb)')
  await listener.query('listen bench_latency_bare')
  const times = []
  for (let i = 0; i < samples; i++) {
    const heard = new Promise((resolve) => listener.once('notification', () => resolve(performance.now())))
    await writer.query('begin')
    await writer.query('insert into bench_latency.bare (payload) values ($1)', [JSON.stringify(payload)])
    await writer.query("select pg_notify('bench_latency_bare', '')")
    await writer.query('commit')
    const at = performance.now()
    times.push(Math.max(0, (await heard) - at))
    await sleep(20)
  }
  return times
}
