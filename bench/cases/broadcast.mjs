/** What one event costs that is broadcast to ten subscribers, from `send` until all of them have read it. */
import { createBroadcaster } from 'aftercommit'
import { atMost } from '../goals.mjs'
import { median } from '../measure.mjs'

const SUBSCRIBERS = 10
const EVENTS = 100_000
/** Less than a ring, so that everybody reads everything. */
const CHUNK = 500

export async function run({ rounds }) {
  const times = []
  for (let round = -1; round < rounds; round++) {
    const time = await measure()
    if (round >= 0) times.push(time)
  }
  const each = median(times)
  return {
    title: `broadcast: processor time of one event, until ${SUBSCRIBERS} subscribers have read it`,
    figures: [['per event', `${each.toFixed(2)} µs`]],
    goals: [atMost('per event', each, 5, 'µs')],
  }
}

async function measure() {
  const broadcaster = createBroadcaster()
  let heard = 0
  const readers = Array.from({ length: SUBSCRIBERS }, async () => {
    for await (const event of broadcaster.subscribe()) heard += event.about === 'resource' ? 1 : Number.NaN
  })
  const event = { about: 'resource', type: 'order.placed', kind: 'custom', entity: 'order', id: '1' }
  const began = process.cpuUsage()
  for (let sent = 0; sent < EVENTS; sent += CHUNK) {
    for (let n = 0; n < CHUNK; n++) broadcaster.send(event)
    while (heard < (sent + CHUNK) * SUBSCRIBERS) await new Promise(setImmediate)
  }
  const { user, system } = process.cpuUsage(began)
  broadcaster.close()
  await Promise.all(readers)
  if (heard !== EVENTS * SUBSCRIBERS) throw new Error(`${heard} heard instead of ${EVENTS * SUBSCRIBERS}`)
  return (user + system) / EVENTS
}
