import { Writable } from 'node:stream'
import { inspect } from 'node:util'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import {
  AftercommitEvent,
  aggregateKey,
  eventSerializer,
  metadataFromStored,
  metadataToStored,
} from '../../src/events/index.ts'
import { sampleEvent } from './sample-event.ts'

describe('an event', () => {
  it('gives back every field it was made of', () => {
    const event = sampleEvent({ version: 3, tenant: 'acme' })
    expect(event).toMatchObject({
      id: '0198c2f4-3e12-7abc-9def-1e2345678901',
      type: 'order.placed',
      position: 42n,
      aggregateType: 'order',
      aggregateId: '7',
      version: 3,
      tenant: 'acme',
      occurredAt: new Date('2026-03-01T12:00:00.000Z'),
      recordedAt: new Date('2026-03-01T12:00:00.250Z'),
      kind: 'custom',
      traceId: '0af7651916cd43dd8448eb211c80319c',
      key: 'order/7',
    })
    expect(event.payload).toEqual({ total: 90, note: 'secret-payload' })
    expect(event.changes).toEqual({ status: { old: 'secret-old', new: 'secret-new' } })
    expect(event.previous).toEqual({ status: 'secret-previous' })
    expect(event.metadata.userId).toBe('secret-user')
  })

  it('differs from another that has other ids', () => {
    expect(sampleEvent()).toEqual(sampleEvent())
    expect(sampleEvent()).not.toEqual(sampleEvent({ id: 'another' }))
  })

  it.each([
    ['nothing', null],
    ['a malformed header', '00-xyz-1-01'],
    ['the trace id that means none', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
  ])('has no trace id when the traceparent is %s', (_, traceparent) => {
    expect(sampleEvent({ metadata: metadataFromStored({ traceparent }) }).traceId).toBeNull()
  })

  it('is its own key when it has no aggregate', () => {
    expect(sampleEvent({ id: 'evt-1', aggregateType: null, aggregateId: null }).key).toBe('evt-1')
  })

  it('never shares a key with another aggregate', () => {
    const pairs = [
      ['a/b', 'c'],
      ['a', 'b/c'],
      ['a%2Fb', 'c'],
      ['a%252Fb', 'c'],
    ] as const
    expect(new Set(pairs.map(([type, id]) => aggregateKey(type, id))).size).toBe(pairs.length)
  })
})

describe('a copy of an event', () => {
  it.each([
    ['a spread', (event: AftercommitEvent): object => ({ ...event })],
    ['Object.assign', (event: AftercommitEvent): object => Object.assign({}, event)],
    ['its own property descriptors', (event: AftercommitEvent): object => Object.getOwnPropertyDescriptors(event)],
  ])('made by %s has neither payload nor user, under any key or symbol', (_, copy) => {
    expect(inspect(copy(sampleEvent()), { showHidden: true, depth: null, getters: true })).not.toContain('secret')
    expect(Object.getOwnPropertySymbols(copy(sampleEvent()))).toEqual([])
  })
})

describe('the metadata of an event', () => {
  const { metadata } = sampleEvent()

  it.each([
    ['console.log', () => inspect(metadata)],
    ['console.log within an object', () => inspect({ metadata }, { depth: null })],
    ['JSON.stringify', () => JSON.stringify({ metadata })],
  ])('is printed by %s without the user', (_, print) => {
    expect(print()).not.toContain('secret-user')
    expect(print()).toContain('[REDACTED]')
    expect(print()).toContain('corr-1')
  })

  it('gives the user by name, and copies it into the metadata of another event', () => {
    expect(metadata.userId).toBe('secret-user')
    expect(metadataToStored({ ...metadata })).toMatchObject({ user_id: 'secret-user', region: 'secret-region' })
    expect(metadata).toEqual({ ...metadata })
  })
})

describe('printing an event', () => {
  const event = sampleEvent()
  const lines: string[] = []
  const log = (write: (logger: ReturnType<typeof pino>) => void, options = {}) => {
    const into = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) })
    write(pino(options, into))
    return lines.at(-1)!
  }

  it.each([
    ['inspect', () => inspect(event)],
    ['inspect of everything', () => inspect(event, { showHidden: true, depth: null, getters: true })],
    ['inspect within something else', () => inspect({ list: [event] }, { depth: null })],
    ['JSON.stringify', () => JSON.stringify({ event })],
    ['JSON.stringify of a copy', () => JSON.stringify({ ...event, position: '42' })],
    ['a text', () => `${event} ${JSON.stringify(Object.entries({ ...event, position: 0 }))}`],
    ['a logger given the event as a member', () => log((logger) => logger.info({ event }))],
    ['a logger given the event itself', () => log((logger) => logger.info(event, 'received'))],
    ['a logger with the serialiser', () => log((l) => l.info({ event }), { serializers: { event: eventSerializer } })],
  ])('by %s shows no payload, change, user or free metadata', (_, print) => {
    expect(print()).not.toContain('secret')
  })

  it('shows what is safe to print', () => {
    expect(JSON.parse(JSON.stringify(event))).toEqual({
      id: '0198c2f4-3e12-7abc-9def-1e2345678901',
      type: 'order.placed',
      position: '42',
      aggregate_type: 'order',
      aggregate_id: '7',
      correlation_id: 'corr-1',
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      user_id: '[REDACTED]',
    })
    expect(inspect(event)).toMatch(/^AftercommitEvent \{[\s\S]*user_id: '\[REDACTED\]'/)
    expect(sampleEvent({ metadata: metadataFromStored(null) }).toLog().user_id).toBeNull()
  })

  it('by the serialiser shows nothing of a value that is not an event', () => {
    expect(eventSerializer({ payload: 'secret' })).toBe('[not an event]')
    expect(eventSerializer(event)).toEqual(event.toLog())
  })

  it('is possible for an event with a payload that JSON.stringify refuses', () => {
    expect(JSON.stringify(new AftercommitEvent({ ...fieldsOf(event), payload: 10n }))).toContain('order.placed')
  })
})

function fieldsOf(event: AftercommitEvent) {
  const { payload, changes, previous, metadata } = event
  return { ...event, payload, changes, previous, metadata }
}
