/** Invalidation: from the answer to COMMIT until Redis says that the key is gone. Nothing else happens meanwhile. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { atMost } from '../goals.mjs'
import { connect, percentile, withLog } from '../measure.mjs'
import { withRedis } from '../redis-server.mjs'

const SAMPLES = 300

export function run({ url }) {
  return withRedis((redis) => {
    return withLog(url, 'bench_cache', async (ac) => {
      const both = await measure(ac, url, redis, 'both')
      const alone = await measure(ac, url, redis, 'redis')
      const show = (times) =>
        `${percentile(times, 0.5).toFixed(2)} / ${percentile(times, 0.99).toFixed(2)} ms (p50 / p99)`
      return {
        title: `cache: commit to key gone from Redis, one event every 20 ms, ${SAMPLES} samples`,
        figures: [
          ['Redis and every process', show(both)],
          ['target = "redis"', show(alone)],
        ],
        goals: [atMost('p50', percentile(both, 0.5), 10, 'ms')],
      }
    })
  })
}

async function measure(ac, url, { url: redisUrl, client }, target) {
  const folder = mkdtempSync(join(tmpdir(), 'ac-bench-'))
  const file = join(folder, 'aftercommit.toml')
  const action = `{ type = "cache", action = "invalidate", target = "${target}", keys = "p:{{ event.aggregate_id }}" }`
  writeFileSync(
    file,
    `[redis]\nurl = "${redisUrl}"\n[observers.bench]\non = "product.changed"\nactions = [${action}]\n`,
  )
  await ac.observers.loadFile(file)
  await ac.start()
  const gone = new Map()
  const watcher = await createClient({ url: redisUrl, RESP: 2 }).connect()
  await client.configSet('notify-keyspace-events', 'Eg')
  await watcher.subscribe('__keyevent@0__:del', (key) => void gone.set(key, performance.now()))
  const { clients, end } = await connect(url, 1)
  await sleep(2_500)
  const committed = new Map()
  for (let i = 0; i < SAMPLES; i++) {
    const id = `${target}-${i}`
    await client.set(`p:${id}`, 'old')
    await ac.emitNow(clients[0], 'product.changed', { aggregate: { type: 'product', id }, payload: {} })
    committed.set(`p:${id}`, performance.now())
    await sleep(20)
  }
  await sleep(2_000)
  await end()
  watcher.destroy()
  rmSync(folder, { recursive: true, force: true })
  return [...committed].map(([key, at]) => Math.max(0, gone.get(key) - at))
}
