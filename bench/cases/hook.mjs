/** What one event costs a process that hands it to a hook of scope `instance`: reading it from the log included. */
import { atMost } from '../goals.mjs'
import { connect, median, payload, withLog } from '../measure.mjs'

const EVENTS = 20_000

export function run({ url, rounds }) {
  return withLog(url, 'bench_hook', async (ac) => {
    const sync = counter()
    const async = counter()
    ac.hooks.add({ name: 'sync', types: ['sync.*'], scope: 'instance', handle: () => sync.count() })
    ac.hooks.add({ name: 'async', types: ['async.*'], scope: 'instance', handle: async () => async.count() })
    await ac.start()
    const { clients, end } = await connect(url, 1)
    const times = { sync: [], async: [] }
    for (let round = -1; round < rounds; round++) {
      for (const [name, counted] of Object.entries({ sync, async })) {
        const perEvent = await measure(clients[0], `${name}.done`, counted)
        if (round >= 0) times[name].push(perEvent)
      }
    }
    await end()
    const show = (name) => `${median(times[name]).toFixed(1)} µs per event`
    return {
      title: 'hook: processor time of one event, from the log to the handler of a hook',
      figures: [
        ['a handler that returns at once', show('sync')],
        ['an asynchronous handler', show('async')],
      ],
      goals: [atMost('at once', median(times.sync), 50, 'µs'), atMost('asynchronous', median(times.async), 50, 'µs')],
    }
  })
}

/** Time of this process on a processor: that of Postgres, and of whatever else the machine does, is not ours. */
async function measure(client, type, counted) {
  const all = counted.expect(EVENTS)
  const began = process.cpuUsage()
  await client.query(
    `select bench_hook.emit($1, 'order', (n % 1000)::text, $2::jsonb) from generate_series(1, $3::int) n`,
    [type, JSON.stringify(payload), EVENTS],
  )
  await all
  const { user, system } = process.cpuUsage(began)
  return (user + system) / EVENTS
}

/** Resolves when so many came. */
function counter() {
  let [left, done] = [0, () => {}]
  return {
    expect(events) {
      left = events
      return new Promise((resolve) => {
        done = resolve
      })
    },
    count() {
      left--
      if (left === 0) done()
    },
  }
}
