/**
 * An observer with a condition and a custom action that does nothing, working off events that are there; against
 * graphile-worker with its local queue, working off as many jobs that do nothing. The variants take turns.
 */
import { createAftercommit } from 'aftercommit'
import { makeWorkerUtils, run as runGraphile } from 'graphile-worker'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, median, payload, perSecond } from '../measure.mjs'

const EVENTS = 50_000

export async function run({ url, rounds }) {
  const variants = {
    problems: await openObserver(url, 'bench_observe_problems', 'problems'),
    all: await openObserver(url, 'bench_observe_all', 'all'),
    graphile: await openGraphile(url),
  }
  const rates = { problems: [], all: [], graphile: [] }
  for (let round = -1; round < rounds; round++) {
    for (const [name, { prepare, drain }] of Object.entries(variants)) {
      await prepare()
      const began = performance.now()
      await drain()
      if (round >= 0) rates[name].push((EVENTS * 1_000) / (performance.now() - began))
    }
  }
  for (const { end } of Object.values(variants)) await end()
  const [some, every, peer] = [median(rates.problems), median(rates.all), median(rates.graphile)]
  return {
    title: `observe: ${EVENTS.toLocaleString('en')} events, an observer with a condition and an action that does nothing`,
    figures: [
      ['record = "problems"', perSecond(some)],
      ['record = "all"', perSecond(every)],
      ['graphile-worker, local queue of 500', perSecond(peer)],
    ],
    goals: [
      atLeast('"problems" / graphile-worker', some / peer, 1.5),
      atLeast('"all" / "problems"', every / some, 0.5),
    ],
  }
}

async function openObserver(url, schema, record) {
  const ac = createAftercommit({ database: url, schema, runtime: { record } })
  await ac.migrate()
  let left = 0
  let done = () => {}
  ac.observers.action('nothing', () => {
    left--
    if (left === 0) done()
  })
  await ac.observers.add({
    name: 'big',
    on: 'order.placed',
    condition: "total > 50 && customer.tier == 'gold'",
    actions: [{ type: 'custom', handler: 'nothing' }],
  })
  await ac.start()
  const observers = ac.subscriptions.get('observers')
  const { clients, end } = await connect(url, 1)
  return {
    async prepare() {
      await observers.pause()
      for (let sent = 0; sent < EVENTS; sent += 1_000) {
        const batch = () => ({ type: 'order.placed', aggregate: { type: 'order', id: uuidv7() }, payload })
        await ac.emitNow(clients[0], Array.from({ length: 1_000 }, batch))
      }
    },
    async drain() {
      left = EVENTS
      const drained = new Promise((resolve) => {
        done = resolve
      })
      await observers.resume()
      await drained
    },
    async end() {
      await ac.stop()
      await clients[0].query(`drop schema ${schema} cascade`)
      await end()
    },
  }
}

async function openGraphile(url) {
  const pool = new pg.Pool({ connectionString: url, max: 12 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const shared = { pgPool: pool, schema: 'bench_observe_graphile', logger: quiet() }
  const utils = await makeWorkerUtils(shared)
  await utils.migrate()
  return {
    async prepare() {
      for (let sent = 0; sent < EVENTS; sent += 1_000) {
        await utils.addJobs(Array.from({ length: 1_000 }, () => ({ identifier: 'nothing', payload })))
      }
    },
    async drain() {
      let left = EVENTS
      let done = () => {}
      const drained = new Promise((resolve) => {
        done = resolve
      })
      const runner = await runGraphile({
        ...shared,
        noHandleSignals: true,
        taskList: {
          nothing: async () => {
            left--
            if (left === 0) done()
          },
        },
        preset: { worker: { concurrentJobs: 50, localQueue: { size: 500 }, completeJobBatchDelay: 0 } },
      })
      await drained
      await runner.stop()
    },
    async end() {
      await utils.release()
      await pool.query('drop schema bench_observe_graphile cascade')
      await pool.end()
    },
  }
}

function quiet() {
  const logger = { scope: () => logger, error() {}, warn() {}, info() {}, debug() {} }
  return logger
}
