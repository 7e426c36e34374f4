/** Evaluating a condition on an event, with making the scope for it; and on one of which it cannot say. */
import { AftercommitEvent } from 'aftercommit'
import { compileCondition, scopeOf } from '../../dist/conditions/index.js'
import { atMost } from '../goals.mjs'
import { median, payload } from '../measure.mjs'

const evaluations = 1_000_000

export function run({ rounds }) {
  const plain = compileCondition("total > 50 && customer.tier == 'gold'")
  const variants = {
    "total > 50 && customer.tier == 'gold'": () => measure(plain, toEvent(payload), true),
    'the same with total absent': () => measure(plain, toEvent({ ...payload, total: undefined }), false),
  }
  const times = Object.entries(variants).map(([name, time]) => {
    time()
    return [name, median(Array.from({ length: rounds }, time))]
  })
  return {
    title: `condition: ${evaluations.toLocaleString('en')} evaluations, each with a scope of its own`,
    figures: times.map(([name, us]) => [name, `${us.toFixed(2)} µs`]),
    goals: [atMost('an evaluation', times[0][1], 2, 'µs')],
  }
}

function measure(condition, event, expected) {
  const began = performance.now()
  for (let count = 0; count < evaluations; count++) {
    if (condition.evaluate(scopeOf(event)).holds !== expected) throw new Error('the verdict is wrong')
  }
  return ((performance.now() - began) * 1_000) / evaluations
}

function toEvent(payload) {
  const now = new Date()
  return new AftercommitEvent({
    id: '0198c2f4-3e12-7abc-9def-1e2345678901',
    type: 'order.placed',
    position: 42n,
    aggregateType: 'order',
    aggregateId: '7',
    version: null,
    payload,
    changes: null,
    previous: null,
    tenant: null,
    metadata: {},
    occurredAt: now,
    recordedAt: now,
  })
}
