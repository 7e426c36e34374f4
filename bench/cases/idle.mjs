/** What a started process costs when nothing happens: transactions per second, counted by the server. */
import { atMost, countIdle, withLog, withoutAutovacuum } from '../measure.mjs'

const seconds = 20

export function run({ url }) {
  return withoutAutovacuum(url, () => compare(url))
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
    return countIdle(url, seconds * 1_000)
  })
}
