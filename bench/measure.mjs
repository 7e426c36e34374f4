/** What the cases share: taking turns, medians, percentiles, and the event that everybody writes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createAftercommit } from 'aftercommit'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
import { median } from './statistics.mjs'

export { median, medianRatio, percentile } from './statistics.mjs'

export const payload = {
  total: 90,
  customer: { email: 'ada@example.com', tier: 'gold' },
  items: [
    { sku: 'a-100', quantity: 1 },
    { sku: 'b-200', quantity: 2 },
  ],
}

/** Calls per second of each variant, with `writers` calls in flight; variants take turns, first one round to warm up. */
export async function takeTurns(variants, { rounds, ms, writers, per = 1 }) {
  const rates = Object.fromEntries(Object.keys(variants).map((name) => [name, []]))
  for (let round = -1; round < rounds; round++) {
    for (const [name, call] of Object.entries(variants)) {
      const rate = await countFor(round < 0 ? ms / 4 : ms, writers, call)
      if (round >= 0) rates[name].push(rate * per)
    }
  }
  return Object.fromEntries(Object.entries(rates).map(([name, all]) => [name, median(all)]))
}

async function countFor(ms, writers, call) {
  const began = performance.now()
  let calls = 0
  const writer = async (number) => {
    while (performance.now() - began < ms) {
      await call(number)
      calls++
    }
  }
  await Promise.all(Array.from({ length: writers }, (_, number) => writer(number)))
  return (calls * 1_000) / (performance.now() - began)
}

export function perSecond(rate) {
  return `${Math.round(rate).toLocaleString('en')} /s`
}

/** Connections held for the whole case, one per writer, in the mode most programs use. */
export async function connect(url, count) {
  const clients = await Promise.all(
    Array.from({ length: count }, async () => {
      const client = new pg.Client(url)
      await client.connect()
      return client
    }),
  )
  return { clients, end: () => Promise.all(clients.map((client) => client.end())) }
}

/** An installed log in a schema of its own, dropped at the end. */
export async function withLog(url, schema, use, options = {}) {
  const ac = createAftercommit({ database: url, schema, poolSize: 32, ...options })
  await ac.migrate()
  try {
    return await use(ac)
  } finally {
    await ac.stop()
    const { clients, end } = await connect(url, 1)
    await clients[0].query(`drop schema ${schema} cascade`)
    await end()
  }
}

/** The plain insert that a programmer would write into our table, or into one like it. */
export function insertText(table) {
  return `insert into ${table} (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
          values ($1, $2, $3, $4, $5, $6, $7) returning position`
}

export function insertValues() {
  const id = uuidv7()
  const metadata = JSON.stringify({ correlation_id: id })
  return [id, 'order.placed', 'order', uuidv7(), JSON.stringify(payload), metadata, new Date().toISOString()]
}

/** Autovacuum's workers are transactions too, and they come whenever tables have changed a minute ago. */
export async function withoutAutovacuum(url, work) {
  const { clients, end } = await connect(url, 1)
  const set = async (how) => {
    await clients[0].query(`alter system ${how}`)
    await clients[0].query('select pg_reload_conf()')
  }
  await set('set autovacuum = off')
  return work().finally(async () => {
    await set('reset autovacuum')
    await end()
  })
}

/** Transactions per second of those who have nothing to do, counted by the server. */
export async function countIdle(url, ms) {
  // Sessions that have become idle report what they did before up to ten seconds later.
  await sleep(15_000)
  const { clients, end } = await connect(url, 1)
  const before = await transactions(clients[0])
  await sleep(ms)
  const after = await transactions(clients[0])
  await end()
  // Reading the counter is a transaction of its own.
  return ((after - before - 1) * 1_000) / ms
}

/** Statistics of other sessions arrive with a delay of up to a second or so, at both ends alike. */
async function transactions(client) {
  const { rows } = await client.query(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0].count)
}
