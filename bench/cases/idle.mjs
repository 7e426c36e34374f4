/** What started processes cost when nothing happens: transactions per second, counted by the server; each is one query. */
import { accept, createAftercommit, defineWorkflow } from 'aftercommit'
import { atMost } from '../goals.mjs'
import { countIdle, withLog, withoutAutovacuum } from '../measure.mjs'

const SCHEMA = 'bench_idle'
const seconds = 20

/** A process with nothing to deliver does not even look, so that delivery is only measured where something is registered. */
const nothing = defineWorkflow({
  type: 'nothing',
  id: ({ id }) => id,
  initial: () => 0,
  evolve: (count) => count + 1,
  decide: () => accept([{ type: 'asked' }], { effects: [{ type: 'nothing' }] }),
})

export function run({ url }) {
  return withoutAutovacuum(url, () => compare(url))
}

async function compare(url) {
  const none = await measure(url, {})
  const one = await measure(url, { subscriptions: 1 })
  const many = await measure(url, { subscriptions: 200 })
  const worker = await measure(url, { workers: 1 })
  const two = await measure(url, { workers: 2 })
  const shown = (rate) => `${rate.toFixed(2)} queries/s`
  return {
    title: `idle: started processes, nothing happens, ${seconds} s`,
    figures: [
      ['no subscription', shown(none)],
      ['1 subscription', shown(one)],
      ['200 subscriptions', shown(many)],
      ['1 worker of deliveries', shown(worker)],
      ['2 workers, a process each', shown(two)],
    ],
    goals: [
      atMost('queries with 200 subscriptions', many, 2, '/s'),
      // Two renewals more or less in a window of 20 s.
      atMost('200 subscriptions beyond 1', many - one, 0.2, '/s'),
      atMost('queries with 1 worker', worker, 2, '/s'),
      atMost('queries with 2 workers, for each', two / 2, 2, '/s'),
    ],
  }
}

/** One process, or one for each worker. */
function measure(url, { subscriptions = 0, workers = 0 }) {
  return withLog(url, SCHEMA, async (ac) => {
    for (let i = 0; i < subscriptions; i++) ac.subscribe({ id: `idle-${i}`, handle: () => {} })
    const others = Array.from({ length: Math.max(0, workers - 1) }, () =>
      createAftercommit({ database: url, schema: SCHEMA }),
    )
    try {
      for (const one of [ac, ...others]) {
        if (workers > 0) one.workflows.register(nothing, { effects: { nothing: () => {} } })
        await one.start()
      }
      await untilWorking(ac, workers)
      return await countIdle(url, seconds * 1_000)
    } finally {
      await Promise.all(others.map((one) => one.stop()))
    }
  })
}

/** What is measured must be there: every worker has said what it can do. */
async function untilWorking({ deliveries }, workers) {
  while (workers > 0 && !(await deliveries.names()).some((name) => name.workers === workers));
}
