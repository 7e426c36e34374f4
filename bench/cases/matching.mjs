/** Finding the observers of an event among a hundred and among ten thousand; and loading a thousand from TOML. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createMatching } from '../../dist/observers/matching.js'
import { root } from '../../scripts/steps.mjs'
import { atMost } from '../goals.mjs'
import { median, medianRatio } from '../measure.mjs'

const LOOKUPS = 2_000_000
const TYPES = 100

export function run({ rounds }) {
  const few = createMatching(observers(100))
  const many = createMatching(observers(10_000))
  const times = { few: [], many: [] }
  for (let round = -1; round < rounds; round++) {
    const [one, other] = [measure(few), measure(many)]
    if (round < 0) continue
    times.few.push(one)
    times.many.push(other)
  }
  const first = median(Array.from({ length: rounds }, (_, round) => firstOf(many, `invoice.type_${round}`)))
  const loads = Array.from({ length: rounds }, load)
  // The fastest: in a process that lives for a second, a slow moment of the machine is most of the figure.
  const of = (key) => Math.min(...loads.map((one) => one[key]))
  return {
    title: `matching: ${LOOKUPS.toLocaleString('en')} events of ${TYPES} types, each of which two observers are about`,
    figures: [
      ['with 100 observers', `${median(times.few).toFixed(0)} ns per event`],
      ['with 10,000 observers', `${median(times.many).toFixed(0)} ns per event`],
      ['the first event of a type, with 10,000 observers', `${first.toFixed(2)} ms`],
      [`loading 1,000 observers, ${of('kilobytes').toFixed(0)} kB of TOML`, `${of('wall').toFixed(0)} ms`],
      ['  processor time of that, all threads', `${of('cpu').toFixed(0)} ms`],
      ['  from the start of the process until then', `${of('imported').toFixed(0)} ms`],
    ],
    goals: [
      atMost('10,000 observers against 100', medianRatio(times.many, times.few), 1.2, '×'),
      atMost('loading 1,000 in a fresh process', of('wall') / 1_000, 1, 's'),
    ],
  }
}

/** Each is about a type of its own, of which events have the first hundred; the last is about all of them. */
function observers(count) {
  const own = Array.from({ length: count - 1 }, (_, n) => ({ on: [`order.type_${n}`], entity: null }))
  return [...own, { on: ['order.*'], entity: 'order' }]
}

/** Nanoseconds for one event. */
function measure(matching) {
  const events = Array.from({ length: TYPES }, (_, n) => ({ type: `order.type_${n % 99}`, aggregateType: 'order' }))
  const began = performance.now()
  let found = 0
  for (let at = 0; at < LOOKUPS; at++) found += matching.find(events[at % TYPES]).length
  if (found !== 2 * LOOKUPS) throw new Error('not every event found its two observers')
  return ((performance.now() - began) * 1e6) / LOOKUPS
}

function firstOf(matching, type) {
  const began = performance.now()
  if (matching.find({ type, aggregateType: null }).length > 0) throw new Error('found observers of another type')
  return performance.now() - began
}

function load() {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, 'bench/load-observers.mjs'), '1000'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}
