/** What a started process costs when nothing happens: statements per second, counted by the server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, connect, withLog } from '../measure.mjs'

const seconds = 20

export function run({ url }) {
  return withLog(url, 'bench_idle', async (ac) => {
    await ac.start()
    await sleep(4_000)
    const { clients, end } = await connect(url, 1)
    const before = await transactions(clients[0])
    await sleep(seconds * 1_000)
    const after = await transactions(clients[0])
    await end()
    // Reading the counter is a transaction of its own.
    const rate = (after - before - 1) / seconds
    return {
      title: `idle: one started process, nothing happens, ${seconds} s`,
      figures: [['transactions per second', rate.toFixed(2)]],
      goals: [atMost('queries', rate, 2, '/s')],
    }
  })
}

/** Statistics of other sessions arrive with a delay of up to a second or so, at both ends alike. */
async function transactions(client) {
  const { rows } = await client.query(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0].count)
}
