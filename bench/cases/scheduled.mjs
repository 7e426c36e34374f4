/**
 * What 100,000 deliveries that are scheduled for tomorrow cost today: transactions per second of an idle process, and how
 * fast due work of the same name is inserted, claimed, run and completed beside them. All of them in one lane, as timers
 * are; and spread over 1,000 destinations.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRetry } from '../../dist/runtime/index.js'
import { atLeast, atMost, connect, median, perSecond, withLog } from '../measure.mjs'
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
  const idle = {}
  for (const name of Object.keys(variants)) idle[name] = await withScheduled(url, name, () => countIdle(url))
  const rates = await takeTurns(url, rounds)
  const shown = (name) => `idle ${idle[name].toFixed(2)} /s, due ones done ${perSecond(rates[name])}`
  return {
    title: `scheduled: ${SCHEDULED.toLocaleString('en')} deliveries that are due tomorrow`,
    figures: [
      ['nothing scheduled', shown('none')],
      ['in one lane', shown('one')],
      ['in 1,000 lanes', shown('many')],
    ],
    goals: [
      atMost('idle queries beyond those without', idle.one - idle.none, 1, '/s'),
      atMost('the same, 1,000 lanes', idle.many - idle.none, 1, '/s'),
      atLeast('rate of due work / rate without', rates.one / rates.none, 0.9),
    ],
  }
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

/** Transactions per second, counted by the server. */
async function countIdle(url) {
  // Sessions that have become idle report what they did before up to ten seconds later.
  await sleep(15_000)
  const { clients, end } = await connect(url, 1)
  const before = await transactions(clients[0])
  await sleep(IDLE_MS)
  const after = await transactions(clients[0])
  await end()
  // Reading the counter is a transaction of its own.
  return ((after - before - 1) * 1_000) / IDLE_MS
}

async function transactions(client) {
  const { rows } = await client.query(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0].count)
}
