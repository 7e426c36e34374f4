/** What a relay decides, without a database. */
import { describe, expect, it } from 'vitest'
import { AftercommitEvent, metadataFromStored, type StoredMetadata } from '../../src/events/index.ts'
import { relayDefaults } from '../../src/options.ts'
import type { Database } from '../../src/postgres/index.ts'
import { createHealth, createRegistry, createTestClock, parseRetry, silentLogger } from '../../src/runtime/index.ts'
import {
  createRelays,
  GiveUp,
  memorySink,
  RetryAfter,
  SinkUnavailable,
  type SubscriptionHandle,
} from '../../src/subscriptions/index.ts'
import { decidePublish } from '../../src/subscriptions/relay-failure.ts'
import { separate, type Trial } from '../../src/subscriptions/relay-separate.ts'
import { isUnavailable, toMessage } from '../../src/subscriptions/sink.ts'

const policy = parseRetry({ maxAttempts: 3, initialDelay: '1s', maxDelay: '60s' })
const middle = () => 0.5

describe('a call that failed', () => {
  const decide = (error: unknown, tries: number, outages = 0) =>
    decidePublish(error, { tries, outages }, policy, middle)

  it('is repeated by the policy, then its messages go one by one', () => {
    expect(decide(new Error('no'), 0)).toEqual({ kind: 'wait', delayMs: 1_000, counts: true })
    expect(decide(new Error('no'), 1)).toEqual({ kind: 'wait', delayMs: 2_000, counts: true })
    expect(decide(new Error('no'), 2)).toEqual({ kind: 'separate' })
  })

  it('is repeated without end while the sink is unavailable', () => {
    expect(decide(new SinkUnavailable('read-only'), 2)).toEqual({ kind: 'wait', delayMs: 1_000, counts: false })
    expect(decide(new SinkUnavailable('read-only'), 2, 1_000)).toMatchObject({ kind: 'wait', counts: false })
  })

  it('waits for as long as the sink asks for, a day at most', () => {
    expect(decide(new RetryAfter('5s'), 0)).toEqual({ kind: 'wait', delayMs: 5_000, counts: true })
    expect(decide(new RetryAfter('3650d'), 0)).toEqual({ kind: 'wait', delayMs: 86_400_000, counts: true })
  })

  it('is not repeated when a message is refused for ever', () => {
    expect(decide(new GiveUp('too large'), 0)).toEqual({ kind: 'separate' })
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

describe('messages one by one', () => {
  /** Keys by position from 1 on; the positions in `poison` fail. */
  async function play(keys: string, poison: readonly number[], options: Partial<Trial> & { error?: unknown } = {}) {
    const sent: number[] = []
    const known = { accepted: new Set<bigint>(), refused: new Map<bigint, unknown>() }
    const error = options.error ?? new Error('refused')
    const events = [...keys].map((key, i) => sample({ position: BigInt(i + 1), aggregateId: key }))
    const outcome = await separate(events, { error }, known, {
      attempt: async ({ position }) => {
        sent.push(Number(position))
        return poison.includes(Number(position)) ? { error } : undefined
      },
      keyOf: ({ aggregateId }) => aggregateId ?? '',
      stops: false,
      ...options,
    })
    return {
      outcome,
      sent,
      refused: [...known.refused.keys()].map(Number),
      accepted: [...known.accepted].map(Number).sort(),
    }
  }

  it('hold the one responsible that fails while another key passes, and keep later ones of its key back', async () => {
    expect(await play('abcba', [2])).toEqual({
      outcome: 'refused',
      sent: [1, 2, 3, 5],
      refused: [2],
      accepted: [1, 3, 5],
    })
  })

  it('are all accepted when the batch as a whole was the matter', async () => {
    expect(await play('abc', [])).toEqual({ outcome: 'accepted', sent: [1, 2, 3], refused: [], accepted: [1, 2, 3] })
  })

  it('hold nobody responsible when every key fails', async () => {
    const all = await play('abcdefg', [1, 2, 3, 4, 5, 6, 7])
    expect(all).toEqual({ outcome: 'unavailable', sent: [1, 2, 3, 4, 5, 6], refused: [], accepted: [] })
  })

  it('hold them responsible when there are too few others to tell', async () => {
    expect((await play('ab', [1, 2])).refused).toEqual([1, 2])
    expect((await play('a', [1])).refused).toEqual([1])
    expect((await play('aaa', [1])).refused).toEqual([1])
  })

  it('let nothing pass the first that fails when the relay stops there', async () => {
    expect(await play('abc', [2], { stops: true })).toEqual({
      outcome: 'refused',
      sent: [1, 2],
      refused: [2],
      accepted: [1],
    })
  })

  it('need no second opinion on a message that is given up', async () => {
    const given = await play('abcdefg', [1, 2, 3, 4, 5, 6, 7], { error: new GiveUp('too large') })
    expect(given.refused).toEqual([1, 2, 3, 4, 5, 6, 7])
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
