/**
 * Word through Redis: from the answer to COMMIT here, over an instance in another process that publishes, until the
 * message is heard here.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { redisListener } from 'aftercommit/redis'
import { atMost } from '../goals.mjs'
import { connect, payload, percentile, withLog } from '../measure.mjs'
import { withRedis } from '../redis-server.mjs'

const SAMPLES = 300

export function run({ url }) {
  return withRedis(async ({ url: redisUrl }) => {
    const rung = await measure(url, redisUrl, 'bench_redis', 'doorbell')
    const polled = await measure(url, redisUrl, 'bench_redis_poll', 'poll')
    const show = (times) =>
      `${percentile(times, 0.5).toFixed(2)} / ${percentile(times, 0.99).toFixed(2)} ms (p50 / p99)`
    return {
      title: `redis: commit to message heard, published by another process, one event every 20 ms, ${SAMPLES} samples`,
      figures: [
        ['the database rings', show(rung)],
        ['wake = "poll": it rings nobody', show(polled)],
      ],
      goals: [atMost('p50', percentile(rung, 0.5), 5, 'ms'), atMost('p50 by poll', percentile(polled, 0.5), 30, 'ms')],
    }
  })
}

function measure(url, redisUrl, schema, wake) {
  return withLog(
    url,
    schema,
    async (ac) => {
      const script = fileURLToPath(new URL('../redis-relay.mjs', import.meta.url))
      const publisher = fork(script, [url, schema, redisUrl])
      await once(publisher, 'message')
      const heard = new Map()
      const listener = redisListener({
        url: redisUrl,
        channel: `aftercommit:${schema}:events`,
        onEvent: ({ id }) => void heard.set(id, performance.now()),
        onGap: () => {},
      })
      await listener.start()
      const { clients, end } = await connect(url, 1)
      // The reader arms itself once the system has been quiet for a second.
      await sleep(2_500)
      const committed = new Map()
      for (let i = 0; i < SAMPLES; i++) {
        const { id } = await ac.emitNow(clients[0], 'order.placed', { payload })
        committed.set(id, performance.now())
        await sleep(20)
      }
      await sleep(2_000)
      await end()
      await listener.stop()
      publisher.send('end')
      await once(publisher, 'exit')
      return [...committed].map(([id, at]) => Math.max(0, heard.get(id) - at))
    },
    { log: { wake } },
  )
}
