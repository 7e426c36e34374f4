/** What a relay decides, without a database. */
import { describe, expect, it } from 'vitest'
import { AftercommitEvent, metadataFromStored, type StoredMetadata } from '../../src/events/index.ts'
import { relayDefaults } from '../../src/options.ts'
import type { Database } from '../../src/postgres/index.ts'
import { createHealth, createRegistry, createTestClock, parseRetry, silentLogger } from '../../src/runtime/index.ts'
import { decideCall } from '../../src/subscriptions/failure.ts'
import {
  createRelays,
  GiveUp,
  memorySink,
  SinkUnavailable,
  type SubscriptionHandle,
} from '../../src/subscriptions/index.ts'
import { isUnavailable, toMessage } from '../../src/subscriptions/relay/sink.ts'

const policy = parseRetry({ maxAttempts: 3, initialDelay: '1s', maxDelay: '60s' })
const middle = () => 0.5

describe('a call that failed', () => {
  const decide = (error: unknown, attempt: number, outages?: number) =>
    decideCall(
      { error, attempt, byHandler: true, connectionLost: false, faults: 0, committed: 'nothing' },
      outages,
      policy,
      middle,
    )

  it('is repeated without end while the sink is unavailable, at growing distances', () => {
    const error = new SinkUnavailable('read-only')
    expect(decide(error, 1, 0)).toEqual({ kind: 'unavailable', delayMs: 1_000 })
    expect(decide(error, 99, 2)).toEqual({ kind: 'unavailable', delayMs: 4_000 })
    expect(decide(error, 99, 1_000)).toMatchObject({ kind: 'unavailable' })
  })

  it('counts as an attempt of its message while the sink is available', () => {
    expect(decide(new Error('no'), 1)).toMatchObject({ kind: 'retry', delayMs: 1_000, counts: true })
    expect(decide(new Error('no'), 3)).toEqual({ kind: 'dead', hopeless: false })
  })

  it('is not repeated when a message is refused for ever, whatever else is wrong', () => {
    expect(decide(new GiveUp('too large'), 1)).toEqual({ kind: 'dead', hopeless: true })
    expect(decide(new GiveUp('too large'), 1, 5)).toEqual({ kind: 'dead', hopeless: true })
  })
})

describe('an unavailable sink', () => {
  it('is told by the codes of the network, however deep they are wrapped', () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    expect(isUnavailable(refused)).toBe(true)
    expect(isUnavailable(new TypeError('fetch failed', { cause: refused }))).toBe(true)
    expect(isUnavailable(Object.assign(new Error('no'), { code: 'EINVAL' }))).toBe(false)
    expect(isUnavailable('ECONNREFUSED')).toBe(false)
  })

  it('is not looked for in a circle of causes', () => {
    const error = new Error('round')
    error.cause = error
    expect(isUnavailable(error)).toBe(false)
  })
})

describe('a message', () => {
  it('carries the whole event as a CloudEvent, and what fits into headers', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const metadata = { correlation_id: 'ctx\r\nx-evil: 1', traceparent }
    const event = sample({ id: 'e-1', payload: { n: 12345678901234567890n }, tenant: 'acme', metadata })
    const message = toMessage(event, 'a key', 'urn:shop')
    expect(message).toMatchObject({ id: 'e-1', type: 'order.placed', key: 'a key', position: 1n })
    expect(message.cloudEvent).toContain('"data":{"n":12345678901234567890}')
    expect(JSON.parse(message.cloudEvent)).toMatchObject({
      specversion: '1.0',
      id: 'e-1',
      source: 'urn:shop',
      tenant: 'acme',
    })
    expect(message.headers).toEqual({
      'content-type': 'application/cloudevents+json; charset=utf-8',
      traceparent,
      tenant: 'acme',
    })
  })
})

describe('where the database cannot wake us', () => {
  it('the log is looked at as often as the most impatient relay wants, and not at all without one', async () => {
    const clock = createTestClock()
    let looks = 0
    const relays = createRelays({
      database: { schemaName: { name: 'aftercommit' } } as Database,
      clock,
      logger: silentLogger,
      metrics: createRegistry({ clock, logger: silentLogger }),
      health: createHealth({ clock }),
      process: 'here',
      defaults: relayDefaults({}),
      subscriptions: { register: ({ id }) => ({ id }) as SubscriptionHandle },
      read: async () => [],
      look: () => void looks++,
    })
    await relays.service.start()
    await clock.advance(300_000)
    expect(looks).toBe(0)
    relays.register({ id: 'slow', to: memorySink(), pollInterval: '10s' })
    relays.register({ id: 'quick', to: memorySink() })
    await clock.advance(0)
    const before = looks
    await clock.advance(1_000)
    expect(looks - before).toBe(10)
    await relays.service.stop()
  })
})

describe('the environment', () => {
  it('sets what relays are not told', () => {
    expect(relayDefaults({})).toEqual({ pollIntervalMs: 100, batchSize: 100, retentionDays: 7 })
    const env = {
      AFTERCOMMIT_OUTBOX_POLL_INTERVAL_MS: '250',
      AFTERCOMMIT_OUTBOX_BATCH_SIZE: '20',
      AFTERCOMMIT_OUTBOX_RETENTION_DAYS: '30',
    }
    expect(relayDefaults(env)).toEqual({ pollIntervalMs: 250, batchSize: 20, retentionDays: 30 })
  })

  it('is refused by name when it says nonsense', () => {
    expect(() => relayDefaults({ AFTERCOMMIT_OUTBOX_BATCH_SIZE: 'many' })).toThrow('AFTERCOMMIT_OUTBOX_BATCH_SIZE')
  })
})

type Fields = ConstructorParameters<typeof AftercommitEvent>[0]

function sample({ metadata = {}, ...fields }: Omit<Partial<Fields>, 'metadata'> & { metadata?: StoredMetadata }) {
  return new AftercommitEvent<string, unknown>({
    id: 'event',
    type: 'order.placed',
    position: 1n,
    aggregateType: 'order',
    aggregateId: '1',
    version: null,
    payload: {},
    changes: null,
    previous: null,
    tenant: null,
    occurredAt: new Date(0),
    recordedAt: new Date(0),
    ...fields,
    metadata: metadataFromStored(metadata),
  })
}
