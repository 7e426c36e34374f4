/** The in-memory twin: 100 publishes, each delivered to a handler before the next. */
import { memoryBus } from 'aftercommit/testing'
import { atMost } from '../goals.mjs'
import { median } from '../measure.mjs'

const publishes = 100

export async function run({ rounds }) {
  const handle = { plain: () => {}, reading: (event) => event.payload.total }
  const times = { plain: [], reading: [] }
  for (let round = 0; round < rounds * 100; round++) {
    for (const [name, handler] of Object.entries(handle)) {
      const ms = await time(handler)
      // The first rounds are the compiler's.
      if (round >= rounds * 20) times[name].push(ms)
    }
  }
  const show = (all) => `${median(all).toFixed(2)} ms`
  return {
    title: `memory: ${publishes} publishes on the in-memory twin, with a handler`,
    figures: [
      ['a handler that does nothing', show(times.plain)],
      ['a handler that reads the payload', show(times.reading)],
    ],
    goals: [atMost(`${publishes} publishes`, median(times.plain), 1, 'ms')],
  }
}

async function time(handler) {
  const bus = memoryBus()
  let seen = 0
  bus.subscribe({
    id: 'handler',
    handle(event) {
      handler(event)
      seen++
    },
  })
  const began = performance.now()
  for (let n = 0; n < publishes; n++) await bus.emit('order.placed', { payload: { total: n } })
  const ms = performance.now() - began
  if (seen !== publishes) throw new Error(`handled ${seen} of ${publishes} events`)
  return ms
}
