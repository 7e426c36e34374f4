/** What a started process costs when nothing happens: transactions per second, counted by the server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, connect, withLog } from '../measure.mjs'

const seconds = 20

export function run({ url }) {
  return withoutAutovacuum(url, () => compare(url))
}

/** Its workers are transactions of this database too, and they come whenever tables have changed a minute ago. */
async function withoutAutovacuum(url, work) {
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

async function compare(url) {
  const none = await measure(url, 0)
  const one = await measure(url, 1)
  const many = await measure(url, 200)
  return {
    title: `idle: one started process, nothing happens, ${seconds} s`,
    figures: [
      ['no subscription', `${none.toFixed(2)} /s`],
      ['1 subscription', `${one.toFixed(2)} /s`],
      ['200 subscriptions', `${many.toFixed(2)} /s`],
    ],
    goals: [
      atMost('queries with 200 subscriptions', many, 2, '/s'),
      // Two renewals more or less in a window of 20 s.
      atMost('200 subscriptions beyond 1', many - one, 0.2, '/s'),
    ],
  }
}

function measure(url, subscriptions) {
  return withLog(url, 'bench_idle', async (ac) => {
    for (let i = 0; i < subscriptions; i++) ac.subscribe({ id: `idle-${i}`, handle: () => {} })
    await ac.start()
    // Sessions that have become idle report what they did at the start up to ten seconds later.
    await sleep(15_000)
    const { clients, end } = await connect(url, 1)
    const before = await transactions(clients[0])
    await sleep(seconds * 1_000)
    const after = await transactions(clients[0])
    await end()
    // Reading the counter is a transaction of its own.
    return (after - before - 1) / seconds
  })
}

/** Statistics of other sessions arrive with a delay of up to a second or so, at both ends alike. */
async function transactions(client) {
  const { rows } = await client.query(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0].count)
}
