/** Rendering a small message and a small body for an event, with making the scope for it. */
import { AftercommitEvent } from 'aftercommit'
import { scopeOf } from '../../dist/conditions/index.js'
import { compileTemplate, compileTree } from '../../dist/observers/templates/index.js'
import { atMost } from '../goals.mjs'
import { median, payload } from '../measure.mjs'

const renderings = 100_000

export function run({ rounds }) {
  const message = compileTemplate(
    'Order {{ event.aggregate_id }} of {{ customer.email | mask_email }} for {{ total | currency }}' +
      '{% if customer.tier == "gold" %}, gold{% endif %}:{% for item in items %} {{ item.sku }}{% endfor %}',
    { target: 'slack' },
  )
  const body = compileTree({
    id: '{{ event.id }}',
    total: '{{ total }}',
    who: 'by {{ customer.email }}',
    items: '{{ items }}',
  })
  const dated = compileTemplate("{{ event.occurred_at | date('DD.MM.YYYY HH:mm', 'Europe/Berlin') }}", {
    target: 'plain',
  })
  const variants = {
    'a message: five holes, if, for': () => measure(message),
    'a body of four values': () => measure(body),
    'a time in a zone': () => measure(dated),
  }
  const times = Object.entries(variants).map(([name, time]) => {
    time()
    return [name, median(Array.from({ length: rounds }, time))]
  })
  return {
    title: `template: ${renderings.toLocaleString('en')} renderings, each with a scope of its own`,
    figures: times.map(([name, us]) => [name, `${us.toFixed(2)} µs`]),
    goals: times.map(([name, us]) => atMost(name, us, 30, 'µs')),
  }
}

function measure(template) {
  const began = performance.now()
  for (let count = 0; count < renderings; count++) {
    if (!template.render(scopeOf(event))) throw new Error('nothing was rendered')
  }
  return ((performance.now() - began) * 1_000) / renderings
}

const event = new AftercommitEvent({
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
  occurredAt: new Date('2026-03-01T12:00:00Z'),
  recordedAt: new Date('2026-03-01T12:00:00Z'),
})
