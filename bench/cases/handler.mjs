/** From the answer to COMMIT until the handler of a subscription runs: on a quiet system, and under 500 events a second. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost } from '../goals.mjs'
import { connect, payload, percentile, withLog } from '../measure.mjs'

export function run({ url }) {
  return withLog(url, 'bench_handler', async (ac) => {
    const arrived = new Map()
    ac.subscribe({ id: 'handler', handle: (event) => arrived.set(event.id, performance.now()) })
    await ac.start()
    const { clients, end } = await connect(url, 3)
    await ac.emitNow(clients[0], 'order.placed', { payload })
    // The reader arms itself once the system has been quiet for a second.
    await sleep(2_500)
    const idle = await measure(400, 20, () => ac.emitNow(clients[0], 'order.placed', { payload }), arrived)
    const loaded = await measure(2_500, 2, () => ac.emitNow(clients[0], 'order.placed', { payload }), arrived)
    const bare = await measureNotify(clients.slice(1))
    await end()
    const show = (times) =>
      `${percentile(times, 0.5).toFixed(2)} / ${percentile(times, 0.99).toFixed(2)} ms (p50 / p99)`
    return {
      title: 'handler: commit to handler of a subscription',
      figures: [
        ['idle, one event every 20 ms', show(idle)],
        ['about 500 events a second', show(loaded)],
        ['bare LISTEN/NOTIFY, about 500 a second', show(bare)],
      ],
      goals: [
        atMost('idle p50', percentile(idle, 0.5), 2, 'ms'),
        atMost('idle p99', percentile(idle, 0.99), 5, 'ms'),
        atMost('added under load, p50', percentile(loaded, 0.5) - percentile(bare, 0.5), 10, 'ms'),
      ],
    }
  })
}

async function measure(count, everyMs, emit, arrived) {
  const committed = new Map()
  const began = performance.now()
  for (let i = 0; i < count; i++) {
    const { id } = await emit()
    committed.set(id, performance.now())
    const wait = began + (i + 1) * everyMs - performance.now()
    if (wait > 0) await sleep(wait)
  }
  await sleep(2_000)
  return [...committed].map(([id, at]) => Math.max(0, arrived.get(id) - at))
}

async function measureNotify([writer, listener]) {
  await writer.query('create table bench_handler.bare (id bigserial primary key, payload jsonb)')
  await listener.query('listen bench_handler_bare')
  const arrived = new Map()
  listener.on('notification', ({ payload: word }) => arrived.set(word, performance.now()))
  let sent = 0
  const emit = async () => {
    const id = String(sent++)
    await writer.query('with kept as (insert into bench_handler.bare (payload) values ($1)) select pg_notify($2, $3)', [
      JSON.stringify(payload),
      'bench_handler_bare',
      id,
    ])
    return { id }
  }
  return measure(2_500, 2, emit, arrived)
}
