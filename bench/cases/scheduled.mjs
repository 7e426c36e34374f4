/**
 * What 100,000 deliveries that are scheduled for tomorrow cost today: transactions per second of an idle process, and how
 * fast due work of the same name is inserted, claimed, run and completed beside them. All of them in one lane, as timers
 * are; and spread over 1,000 destinations; and as timers of a workflow.
 */
import { accept, after, defineWorkflow } from 'aftercommit'
import { parseRetry } from '../../dist/runtime/index.js'
import { atLeast, atMost } from '../goals.mjs'
import { connect, countIdle, median, perSecond, withLog, withoutAutovacuum } from '../measure.mjs'
import { openOurs } from './deliver.mjs'

const SCHEDULED = 100_000
const BATCH = 1_000
const DAY_MS = 24 * 60 * 60 * 1_000
const IDLE_MS = 20_000
const delivery = { kind: 'effect', name: 'due', owner: 'bench', payload: {} }

/** How many are due in a round; few where a claim looks at many lanes for one that has something to do. */
const variants = {
  none: { scheduled: 0, lanes: 1, due: 20_000 },
  one: { scheduled: SCHEDULED, lanes: 1, due: 20_000 },
  many: { scheduled: SCHEDULED, lanes: 1_000, due: 1_000 },
}

export async function run({ url, rounds }) {
  const idle = await withoutAutovacuum(url, () => compareIdle(url))
  const rates = await takeTurns(url, rounds)
  const shown = (name) => `idle ${idle[name].toFixed(2)} /s, due ones done ${perSecond(rates[name])}`
  return {
    title: `scheduled: ${SCHEDULED.toLocaleString('en')} deliveries that are due tomorrow`,
    figures: [
      ['nothing scheduled', shown('none')],
      ['in one lane', shown('one')],
      ['in 1,000 lanes', shown('many')],
      [
        'a workflow with one sleeping timer, with 100,000',
        `idle ${idle.awake.toFixed(2)}, ${idle.asleep.toFixed(2)} /s`,
      ],
    ],
    goals: [
      atMost('idle queries beyond those without', idle.one - idle.none, 1, '/s'),
      atMost('the same, 1,000 lanes', idle.many - idle.none, 1, '/s'),
      atMost('the same, sleeping timers of a workflow', idle.asleep - idle.awake, 1, '/s'),
      atLeast('rate of due work / rate without', rates.one / rates.none, 0.9),
    ],
  }
}

async function compareIdle(url) {
  const idle = {}
  for (const name of Object.keys(variants)) idle[name] = await withScheduled(url, name, () => countIdle(url, IDLE_MS))
  return { ...idle, awake: await idleWithTimers(url, 0), asleep: await idleWithTimers(url, SCHEDULED) }
}

/** Due work per second of each variant. */
function takeTurns(url, rounds) {
  return withScheduled(url, 'none', (none) =>
    withScheduled(url, 'one', (one) =>
      withScheduled(url, 'many', async (many) => {
        const rates = { none: [], one: [], many: [] }
        for (let round = -1; round < rounds; round++) {
          for (const [name, play] of Object.entries({ none, one, many })) {
            const { due } = variants[name]
            const began = performance.now()
            await play(due)
            if (round >= 0) rates[name].push((due * 1_000) / (performance.now() - began))
          }
        }
        return Object.fromEntries(Object.entries(rates).map(([name, all]) => [name, median(all)]))
      }),
    ),
  )
}

/** A started instance and its worker, which will hear of new work and so has no reason to look for it. */
function withScheduled(url, name, use) {
  const schema = `bench_scheduled_${name}`
  return withLog(url, schema, async (ac) => {
    await ac.start()
    const ours = await openOurs(url, schema, { willHear: () => true })
    await schedule(ours, variants[name])
    // What autovacuum would do in the middle of it.
    const { clients, end } = await connect(url, 1)
    await clients[0].query(`vacuum analyze ${schema}.deliveries`)
    await end()
    const result = await use(doDue(ours))
    await ours.end()
    return result
  })
}

async function schedule({ delivering, database }, { scheduled, lanes }) {
  const runAt = new Date(Date.now() + DAY_MS)
  const toDelivery = (_, n) => ({ ...delivery, runAt, destination: lanes === 1 ? '' : `destination-${n % lanes}` })
  for (let added = 0; added < scheduled; added += BATCH) {
    await delivering.add(database, Array.from({ length: BATCH }, toDelivery))
  }
}

/** Adds so much due work and waits until it is done. */
function doDue({ delivering, database }) {
  let left = 0
  let done = () => {}
  delivering.register({
    kind: delivery.kind,
    name: delivery.name,
    retry: parseRetry(),
    timeoutMs: 30_000,
    run() {
      left--
      if (left === 0) done()
    },
    toEvent() {
      throw new Error('nothing fails here')
    },
  })
  return async (due) => {
    left = due
    const drained = new Promise((resolve) => {
      done = resolve
    })
    for (let added = 0; added < due; added += BATCH) {
      await delivering.add(
        database,
        Array.from({ length: BATCH }, () => delivery),
      )
    }
    await drained
  }
}

/** The same of timers: a workflow that sleeps in 100,000 instances, against one that does not. */
function idleWithTimers(url, timers) {
  const schema = 'bench_scheduled_timers'
  return withLog(url, schema, async (ac) => {
    ac.workflows.register(sleeper)
    await ac.start()
    await ac.workflows.execute(sleeper, { id: 'first' })
    const { clients, end } = await connect(url, 1)
    await clients[0].query(
      `insert into ${schema}.deliveries (segment, id, lane, owner, key, unique_key, payload, run_at)
       select 0, nextval('${schema}.delivery_ids'), lane, owner, key || n, unique_key || n, payload, run_at
         from ${schema}.deliveries, generate_series(1, ${timers}) n`,
    )
    await clients[0].query(`vacuum analyze ${schema}.deliveries`)
    await end()
    return countIdle(url, IDLE_MS)
  })
}

const sleeper = defineWorkflow({
  type: 'sleeper',
  id: ({ id }) => id,
  initial: () => ({}),
  evolve: (state) => state,
  decide: (_, { id }) => accept([{ type: 'slept' }], { timers: [after('24h', { id }, { key: 'bell' })] }),
})
