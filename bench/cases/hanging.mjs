/**
 * One of 50 destinations hangs: what the other 49 notice of it. Calls of 2 ms at a steady rate, from being added to
 * being done, once as rows and once on the hot path. Rounds with and without the one that hangs take turns, each in a
 * schema of its own, since a circuit that opened would still be open in the next.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRetry } from '../../dist/runtime/index.js'
import { atMost } from '../goals.mjs'
import { median, percentile, withLog } from '../measure.mjs'
import { openOurs } from './deliver.mjs'

const DESTINATIONS = 50
const HANGING = 'destination-0'
const PER_SECOND = 500
const WORK_MS = 2
const TIMEOUT_MS = 5_000
const TICK_MS = 10
/** New lanes and cold plans. */
const WARM_UP_MS = 2_000
/** Long enough for what hangs to take every place it can get, to run out of time, and to open its circuit. */
const ROUND_MS = 8_000
const SCHEMA = 'bench_hanging'

export async function run({ url, ms, rounds }) {
  const lastMs = Math.max(ROUND_MS, ms)
  const paths = { rows: addRows, hot: react }
  const latencies = { rows: { healthy: [], hanging: [] }, hot: { healthy: [], hanging: [] } }
  for (let round = 0; round < rounds; round++) {
    for (const [path, send] of Object.entries(paths)) {
      for (const variant of ['healthy', 'hanging']) {
        latencies[path][variant].push(await play(url, send, { hangs: variant === 'hanging', lastMs }))
      }
    }
  }
  const p = (path, variant, share) => median(latencies[path][variant].map((all) => percentile(all, share)))
  const shown = (path, variant) =>
    `p50 ${p(path, variant, 0.5).toFixed(1)} ms, p99 ${p(path, variant, 0.99).toFixed(1)} ms`
  const ratio = (path) => p(path, 'hanging', 0.99) / p(path, 'healthy', 0.99)
  return {
    title: `hanging: ${PER_SECOND} calls of ${WORK_MS} ms a second to ${DESTINATIONS} destinations, the others when one hangs`,
    figures: [
      ['rows, all healthy', shown('rows', 'healthy')],
      ['rows, one hangs', shown('rows', 'hanging')],
      ['hot path, all healthy', shown('hot', 'healthy')],
      ['hot path, one hangs', shown('hot', 'hanging')],
    ],
    goals: [
      atMost('rows: p99 with one that hangs / without', ratio('rows'), 1.2, 'times'),
      atMost('hot path: p99 with one that hangs / without', ratio('hot'), 1.2, 'times'),
    ],
  }
}

/** Milliseconds from added to done, of all destinations but the one that may hang. */
function play(url, send, { hangs, lastMs }) {
  return withLog(url, SCHEMA, async () => {
    const took = []
    const over = new AbortController()
    setMaxListeners(0, over.signal)
    let measured = false
    const work = {
      kind: 'effect',
      name: 'call',
      retry: parseRetry(),
      timeoutMs: TIMEOUT_MS,
      async run({ destination, payload: { at } }, context) {
        if (destination === HANGING && hangs && measured) await hang(context.signal, over.signal)
        await sleep(WORK_MS)
        if (destination !== HANGING && measured) took.push(performance.now() - at)
      },
      toEvent() {
        throw new Error('nothing dies here')
      },
    }
    const ours = await openOurs(url, SCHEMA)
    ours.delivering.register(work)
    const call = send(ours, work)
    await keepCalling(WARM_UP_MS, call)
    measured = true
    const calls = await keepCalling(lastMs, call)
    measured = false
    over.abort()
    await Promise.all(calls)
    await ours.end()
    return took
  })
}

function addRows({ delivering, database }) {
  const toDelivery = (destination) => ({
    kind: 'effect',
    name: 'call',
    owner: 'bench',
    destination,
    payload: { at: performance.now() },
  })
  return (destinations) => delivering.add(database, destinations.map(toDelivery))
}

function react({ delivering }, work) {
  const reactions = delivering.reactions()
  const { signal } = new AbortController()
  setMaxListeners(0, signal)
  const toReaction = (destination) => {
    const payload = { at: performance.now() }
    return {
      work,
      owner: 'bench',
      destination,
      tenant: '',
      key: null,
      priority: 0,
      run: (context) => work.run({ destination, payload }, context),
      payload: () => payload,
    }
  }
  return (destinations) => reactions.react(destinations.map(toReaction), () => signal)
}

/** Destinations in turn, so many by now whatever the ticks were, and without waiting for what was asked before. */
async function keepCalling(lastMs, call) {
  const began = performance.now()
  const calls = []
  let called = 0
  while (performance.now() - began < lastMs) {
    const owed = Math.floor(((performance.now() - began) * PER_SECOND) / 1_000) - called
    if (owed > 0) calls.push(call(Array.from({ length: owed }, (_, n) => `destination-${(called + n) % DESTINATIONS}`)))
    called += owed
    await sleep(TICK_MS)
  }
  return calls
}

/** Never answers; ends when its time is up, or when the round is over. */
function hang(signal, over) {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    over.addEventListener('abort', resolve, { once: true })
  })
}
