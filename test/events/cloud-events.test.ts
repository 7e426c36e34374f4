import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { fromCloudEvent, parseJson, stringifyJson, toCloudEvent } from '../../src/events/index.ts'
import { events } from './event-samples.ts'
import { sampleEvent } from './sample-event.ts'
import { thrownBy } from './thrown.ts'

const source = 'https://shop.example/orders'
const unlimited = { maxBytes: Number.POSITIVE_INFINITY, maxDepth: 1000 }

describe('CloudEvents', () => {
  it('carry the whole event', () => {
    expect(toCloudEvent(sampleEvent({ version: 3, tenant: 'acme' }), { source })).toEqual({
      specversion: '1.0',
      id: '0198c2f4-3e12-7abc-9def-1e2345678901',
      source,
      type: 'order.placed',
      subject: 'order/7',
      time: '2026-03-01T12:00:00.000Z',
      recordedtime: '2026-03-01T12:00:00.250Z',
      datacontenttype: 'application/json',
      partitionkey: 'order/7',
      position: '42',
      aggregatetype: 'order',
      aggregateid: '7',
      aggregateversion: '3',
      tenant: 'acme',
      correlationid: 'corr-1',
      userid: 'secret-user',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      changes: '{"status":{"old":"secret-old","new":"secret-new"}}',
      previous: '{"status":"secret-previous"}',
      metadata: '{"region":"secret-region"}',
      data: { total: 90, note: 'secret-payload' },
    })
  })

  it('come back as the event they were made of, through JSON text', () => {
    fc.assert(
      fc.property(events, (event) => {
        const text = stringifyJson(toCloudEvent(event, { source }), unlimited)
        const { subject, source: from, aggregate, ...received } = fromCloudEvent(text)
        expect(from).toBe(source)
        expect(aggregate).toEqual(
          event.aggregateType === null ? null : { type: event.aggregateType, id: event.aggregateId },
        )
        expect(subject).toBe(event.aggregateType === null ? null : event.key)
        for (const [field, value] of Object.entries(received)) expect(value).toEqual(Reflect.get(event, field))
      }),
    )
  })

  it('have attribute names and values that the standard allows', () => {
    fc.assert(
      fc.property(events, (event) => {
        const { data, ...attributes } = toCloudEvent(event, { source })
        expect(data).toBe(event.payload)
        for (const [name, value] of Object.entries(attributes)) {
          expect(name).toMatch(/^[a-z0-9]{1,20}$/)
          expect(['string', 'number']).toContain(typeof value)
        }
        expect(attributes.time ?? '2026-').toMatch(/^\d{4}-/)
      }),
    )
  })

  it('keep every digit of exact numbers', () => {
    const payload = parseJson('{"n":9007199254740993,"d":0.100000000000000000000000000001,"e":1e400}')
    const text = stringifyJson(toCloudEvent(sampleEvent({ payload }), { source }))
    expect(text).toContain('"data":{"n":9007199254740993,"d":0.100000000000000000000000000001,"e":1e400}')
    expect(fromCloudEvent(text).payload).toEqual(payload)
  })

  it('leave out a time that JavaScript has no date for', () => {
    const cloudEvent = toCloudEvent(sampleEvent({ occurredAt: new Date(Number.NaN) }), { source })
    expect(cloudEvent).not.toHaveProperty('time')
    expect(fromCloudEvent(cloudEvent).occurredAt).toBeNull()
  })

  it('of other senders need no more than the standard asks for', () => {
    expect(fromCloudEvent({ specversion: '1.0', id: '1', source: '/s', type: 'com.Example.Thing' })).toMatchObject({
      type: 'com.Example.Thing',
      aggregate: null,
      position: null,
      payload: null,
      occurredAt: null,
      metadata: { correlationId: null, schemaVersion: 1, depth: 0 },
    })
  })

  it.each([
    ['specversion', { specversion: '0.3' }],
    ['id', { id: '' }],
    ['id', { id: 7 }],
    ['source', { source: undefined }],
    ['type', { type: null }],
    ['time', { time: 'yesterday' }],
    ['time', { time: '2026-13-01T00:00:00Z' }],
    ['recordedtime', { recordedtime: 5 }],
    ['subject', { subject: {} }],
    ['data_base64', { data_base64: 'AA==' }],
    ['aggregateid', { aggregatetype: 'order' }],
    ['aggregatetype', { aggregateid: '7' }],
    ['aggregateversion', { aggregateversion: '1.5' }],
    ['position', { position: 'x' }],
    ['schemaversion', { schemaversion: -1 }],
    ['changes', { changes: 'not json' }],
    ['previous', { previous: '[]' }],
    ['metadata', { metadata: {} }],
  ])('with a bad %s are refused by that name (%#)', (attribute, change) => {
    const error = thrownBy(AftercommitError, () => fromCloudEvent({ ...toCloudEvent(plain, { source }), ...change }))
    expect(error.code).toBe('BAD_CLOUDEVENT')
    expect(error.message).toContain(`"${attribute}"`)
  })

  it.each([null, 7, [], '[]', '"text"'])('are refused when they are %j', (json) => {
    expect(thrownBy(AftercommitError, () => fromCloudEvent(json)).code).toBe('BAD_CLOUDEVENT')
  })

  it('need a source to be written', () => {
    expect(() => toCloudEvent(plain, { source: '' })).toThrow('"source"')
  })

  it('do not take inherited properties for attributes', () => {
    const attributes = JSON.parse('{"specversion":"1.0","id":"1","source":"/","type":"a","__proto__":{"tenant":"x"}}')
    expect(fromCloudEvent(attributes).tenant).toBeNull()
    expect(fromCloudEvent(Object.assign(Object.create({ tenant: 'x' }), attributes)).tenant).toBeNull()
  })
})

const plain = sampleEvent({ aggregateType: null, aggregateId: null })
