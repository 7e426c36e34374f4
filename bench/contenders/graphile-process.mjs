/** graphile-worker, by default 50 jobs at a time, with the settings its guide gives for throughput. A job `call` is a POST of its payload. */
import { run } from 'graphile-worker'
import pg from 'pg'
import { createCaller } from './caller.mjs'
import { readConfig, serve } from './child.mjs'
import { quiet } from './quiet.mjs'

const { url, receiver, pollInterval = 2_000, concurrentJobs = 50, retryMs } = readConfig()
const pgPool = new pg.Pool({ connectionString: url, max: 12 })
pgPool.on('error', () => {})
pgPool.on('connect', (client) => client.on('error', () => {}))
const caller = receiver === undefined ? undefined : createCaller(receiver)
const runner = await run({
  pgPool,
  noHandleSignals: true,
  noPreparedStatements: true,
  logger: quiet,
  pollInterval,
  taskList: { call: retryMs === undefined ? call : callAgainSoon, nothing: async () => {} },
  preset: {
    worker: { concurrentJobs, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  },
})
serve({
  async close() {
    await runner.stop()
    await pgPool.end()
    await caller?.close()
  },
})

async function call(payload) {
  const status = await caller.post(payload)
  if (status !== 200) throw new Error(`answered ${status}`)
}

/** Its own retries wait for seconds; what failed is put back by hand, as its users do. */
async function callAgainSoon(payload, { addJob }) {
  const status = await caller.post(payload)
  if (status !== 200) await addJob('call', payload, { runAt: new Date(Date.now() + retryMs) })
}
