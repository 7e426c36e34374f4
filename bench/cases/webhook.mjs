/** Webhooks to a receiver of its own process, 50 under way at a time: ours, signed and unsigned, against bare undici. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Agent } from 'undici'
import { scopeOf } from '../../dist/conditions/index.js'
import { fromWire, stringifyJson, toCloudEvent } from '../../dist/events/index.js'
import { idempotencyKeyOf } from '../../dist/observers/action.js'
import { createActionContext, createActionTypes, createTemplateCompiler } from '../../dist/observers/actions/index.js'
import { silentLogger, systemClock } from '../../dist/runtime/index.js'
import { atLeast } from '../goals.mjs'
import { payload, perSecond, takeTurns } from '../measure.mjs'

const CONCURRENCY = 50
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export async function run({ ms, rounds }) {
  const receiver = fork(fileURLToPath(new URL('../webhook-receiver.mjs', import.meta.url)))
  const [port] = await once(receiver, 'message')
  const origin = `http://127.0.0.1:${port}`
  const agent = new Agent({ connections: 64, pipelining: 1 })
  const context = createActionContext({
    templates: createTemplateCompiler(),
    providers: {},
    allow: ['127.0.0.1'],
    handlers: new Map(),
    database: {},
    logger: silentLogger,
    clock: systemClock,
    source: 'urn:aftercommit:bench',
  })
  const webhook = createActionTypes().get('webhook')
  const prepare = (config) => webhook.prepare(webhook.schema.parse({ url: `${origin}/hook`, ...config }), context)
  const plain = prepare({})
  const signed = prepare({ secret })
  const rendered = prepare({
    url: `${origin}/orders/{{ event.aggregate_id }}`,
    body: { order: '{{ event.aggregate_id }}', total: '{{ total }}', who: 'for {{ customer.email }}' },
  })
  const event = sampleEvent()
  // The same bytes, made once.
  const text = stringifyJson(toCloudEvent(event, { source: 'urn:aftercommit:bench' }))
  const headers = {
    'user-agent': 'aftercommit',
    'content-type': 'application/cloudevents+json',
    'webhook-id': `msg_${idempotencyKeyOf(event.id, 'bench', 'webhook')}`,
    'webhook-timestamp': '1767225600',
  }

  const variants = {
    bare: async () => {
      const { body } = await agent.request({ origin, path: '/hook', method: 'POST', headers, body: text })
      await body.text()
    },
    plain: () => plain.run(requestFor(event)),
    signed: () => signed.run(requestFor(event)),
    rendered: () => rendered.run(requestFor(event)),
  }
  try {
    const rates = await takeTurns(variants, { rounds, ms, writers: CONCURRENCY })
    return {
      title: `webhook: calls of a local receiver, ${CONCURRENCY} under way`,
      figures: [
        ['bare undici, ready text', perSecond(rates.bare)],
        ['webhook, the event as CloudEvents JSON', perSecond(rates.plain)],
        ['webhook, signed', perSecond(rates.signed)],
        ['webhook, address and body from templates', perSecond(rates.rendered)],
      ],
      goals: [
        atLeast('webhook / bare undici', rates.plain / rates.bare, 0.6),
        atLeast('webhook with templates / bare undici', rates.rendered / rates.bare, 0.6),
      ],
    }
  } finally {
    await context.close()
    await agent.close()
    receiver.kill()
  }
}

function sampleEvent() {
  return fromWire({
    ...{ id: '0190f0c0-0000-7000-8000-000000000001', type: 'order.placed', position: '1', version: null, tenant: null },
    ...{ aggregate_type: 'order', aggregate_id: '42', payload, changes: null, previous: null, metadata: {} },
    ...{ occurred_at: '2026-01-01T00:00:00.000Z', recorded_at: '2026-01-01T00:00:00.000Z' },
  })
}

/** As an executor makes one: a scope and a key for every attempt, and the one signal that says that it stops. */
const { signal } = new AbortController()

function requestFor(event) {
  return {
    ...{ event, observer: 'bench', action: 'webhook', attempt: 1, createdAt: new Date() },
    idempotencyKey: idempotencyKeyOf(event.id, 'bench', 'webhook'),
    signal,
    scope: scopeOf(event),
  }
}
