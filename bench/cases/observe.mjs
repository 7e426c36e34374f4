/**
 * An observer with a condition and a custom action that does nothing, working off events that are there, with records of
 * all runs and of problems only. The variants take turns. The journey `observers` plays it against graphile-worker.
 */
import { createAftercommit } from 'aftercommit'
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, median, payload, perSecond } from '../measure.mjs'

const EVENTS = 50_000

export async function run({ url, rounds }) {
  const variants = {
    problems: await openObserver(url, 'bench_observe_problems', 'problems'),
    all: await openObserver(url, 'bench_observe_all', 'all'),
  }
  const rates = { problems: [], all: [] }
  for (let round = -1; round < rounds; round++) {
    for (const [name, { prepare, drain }] of Object.entries(variants)) {
      await prepare()
      const began = performance.now()
      await drain()
      if (round >= 0) rates[name].push((EVENTS * 1_000) / (performance.now() - began))
    }
  }
  for (const { end } of Object.values(variants)) await end()
  const [some, every] = [median(rates.problems), median(rates.all)]
  return {
    title: `observe: ${EVENTS.toLocaleString('en')} events, an observer with a condition and an action that does nothing`,
    figures: [
      ['record = "problems"', perSecond(some)],
      ['record = "all"', perSecond(every)],
    ],
    goals: [atLeast('"all" / "problems"', every / some, 0.5)],
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
