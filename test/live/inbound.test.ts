/** What can be said of inbound events without a database: options, content types, mistakes, ids. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/events/index.ts'
import { type ReadingContext, toReceived } from '../../src/live/inbound-event.ts'
import { modeOf } from '../../src/live/inbound-modes.ts'
import { type InboundOptions, toInboundSettings } from '../../src/live/inbound-options.ts'
import type { Mistake } from '../../src/live/inbound-problem.ts'

const TOKEN = 'a-token-that-nobody-guesses'

describe('creating an endpoint', () => {
  it.each<[string, Partial<InboundOptions>, string]>([
    ['with neither a token nor a secret', { token: undefined }, 'BAD_OPTION'],
    ['without types it takes', { allow: [] }, 'BAD_OPTION'],
    ['without `allow`', { allow: undefined as never }, 'BAD_OPTION'],
    ['with a pattern that is none', { allow: ['Lamp!'] }, 'BAD_PATTERN'],
    ['that allows auth events', { allow: ['lamp.*', 'auth.*'] }, 'BAD_OPTION'],
    ['that allows events of our own', { allow: ['aftercommit.schedule'] }, 'BAD_OPTION'],
    ['with a token that can be guessed', { token: 'short' }, 'BAD_OPTION'],
    ['with an empty list of tokens', { token: [] }, 'BAD_OPTION'],
    ['with an empty list of secrets', { secret: [] }, 'BAD_OPTION'],
    ['with a secret that protects nothing', { secret: 'abc' }, 'BAD_OPTION'],
    ['with a limit that is no number of events', { maxEvents: 0 }, 'BAD_OPTION'],
    ['with a size that is none', { maxBytes: 'much' }, 'BAD_OPTION'],
    ['with a time that is none', { timeout: 'soon' }, 'BAD_DURATION'],
    ['with a tolerance that is no duration', { tolerance: Number.NaN as never }, 'BAD_DURATION'],
  ])('is refused %s', (_, options, code) => {
    expect(() => toInboundSettings({ allow: ['lamp.*'], token: TOKEN, ...options })).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('never allows what has a meaning of its own, not even by a pattern for everything', () => {
    const { isAllowed } = toInboundSettings({ allow: ['*'], token: TOKEN })
    const types = ['lamp.lit', 'auth.login', 'auth', 'auth.v2', 'aftercommit.schedule', 'authors.added']
    expect(types.filter(isAllowed)).toEqual(['lamp.lit', 'authors.added'])
  })

  it('finds any of its tokens and no other', async () => {
    const { checkToken } = toInboundSettings({ allow: ['*'], token: [TOKEN, `${TOKEN}-2`] })
    const request = new Request('http://house')
    expect(checkToken!(`${TOKEN}-2`, request)).toBe(`${TOKEN}-2`)
    for (const wrong of ['', `${TOKEN}-3`, TOKEN.slice(1), `${TOKEN} `]) expect(checkToken!(wrong, request)).toBeNull()
  })
})

describe('the mode of a request', () => {
  it.each([
    ['structured', { 'content-type': 'application/cloudevents+json' }],
    ['structured', { 'content-type': 'Application/CloudEvents+JSON ; Charset="UTF-8"' }],
    ['batch', { 'content-type': 'application/cloudevents-batch+json; charset=utf-8' }],
    ['binary', { 'content-type': 'application/json', 'ce-specversion': '1.0' }],
    ['binary', { 'content-type': 'application/vnd.lamp.v2+json', 'ce-specversion': '1.0' }],
    ['binary', { 'ce-specversion': '1.0' }],
  ])('is %s for %o', (mode, headers) => {
    expect(modeOf(new Headers(headers as Record<string, string>))).toBe(mode)
  })

  it.each([
    { 'content-type': 'application/json' },
    { 'content-type': 'text/plain', 'ce-specversion': '1.0' },
    { 'content-type': 'application/cloudevents+xml' },
    { 'content-type': 'application/cloudevents+json; charset=utf-16' },
    { 'content-type': 'application/cloudevents+json', 'content-encoding': 'gzip' },
    {},
  ])('is none for %o', (headers) => {
    expect(() => modeOf(new Headers(headers as Record<string, string>))).toThrow(
      expect.objectContaining({ status: 415 }),
    )
  })
})

const context: ReadingContext = {
  isAllowed: (type) => type.startsWith('lamp.'),
  definitions: undefined,
  maxPayloadBytes: 1_000,
  maxNesting: 10,
  user: 'ada',
  tenant: 'house',
}

const given = {
  specversion: '1.0',
  id: '1',
  source: '/lamps',
  type: 'lamp.lit',
  data: { watts: 9, room: { name: 'hall', floor: 1 } },
  time: '2026-03-01T12:00:00Z',
}

async function read(event: unknown, more: Partial<ReadingContext> = {}) {
  const mistakes: Mistake[] = []
  const received = await toReceived(event, 3, { ...context, ...more }, mistakes)
  return { received, mistakes, fields: mistakes.map(({ field }) => field) }
}

describe('an event from outside', () => {
  it('keeps what its sender may say, and takes user and tenant from the caller', async () => {
    const { received, mistakes } = await read({
      ...given,
      aggregatetype: 'lamp',
      aggregateid: '7',
      changes: '{"watts":{"old":8,"new":9}}',
      previous: '{"watts":8}',
      correlationid: 'evening',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    })
    expect(mistakes).toEqual([])
    expect(received!).toMatchObject({
      type: 'lamp.lit',
      aggregate: { type: 'lamp', id: '7' },
      payload: given.data,
      changes: { watts: { old: 8, new: 9 } },
      previous: { watts: 8 },
      occurredAt: new Date('2026-03-01T12:00:00Z'),
      tenant: 'house',
      metadata: { userId: 'ada', correlationId: 'evening', source: '/lamps', source_id: '1' },
    })
  })

  it('takes neither place, times of ours, causes nor whose it is from the body', async () => {
    const forged = {
      ...given,
      position: '1',
      recordedtime: '1999-01-01T00:00:00Z',
      causationid: 'forged',
      depth: 31,
      userid: 'root',
      tenant: 'castle',
      aggregateversion: '9',
      schemaversion: 9,
      metadata: '{"role":"admin"}',
    }
    const { received } = await read(forged)
    expect(received).toEqual((await read(given)).received)
  })

  it('reports every mistake, each with its place', async () => {
    const { mistakes, fields } = await read({
      specversion: '0.3',
      source: 7,
      type: 'Lamp Lit',
      time: 'yesterday',
      aggregatetype: 'lamp',
      changes: 'x',
      previous: '[]',
      correlationid: 'a\nb',
      data_base64: 'AA==',
    })
    expect(fields).toEqual(
      expect.arrayContaining(['specversion', 'id', 'source', 'type', 'time', 'aggregateid', 'changes', 'previous']),
    )
    expect(fields).toEqual(expect.arrayContaining(['correlationid', 'data_base64']))
    expect(mistakes.every(({ index, detail }) => index === 3 && detail.length > 0)).toBe(true)
  })

  it.each<[string, unknown, string]>([
    ['text', 'lamp', ''],
    ['nothing', null, ''],
    ['an array', [given], ''],
    ['a type that is not allowed', { ...given, type: 'door.opened' }, 'type'],
    ['a source of control characters', { ...given, source: 'a\u0000b' }, 'source'],
    ['a source with half a character', { ...given, source: '/\ud800' }, 'source'],
    ['a source that is too long', { ...given, source: 'x'.repeat(1_001) }, 'source'],
    ['a correlation id with half a character', { ...given, correlationid: '\udc00' }, 'correlationid'],
    ['an aggregate with half a character', { ...given, aggregatetype: 'lamp', aggregateid: '\ud800' }, 'aggregateid'],
    ['an id that is too long', { ...given, id: 'x'.repeat(256) }, 'id'],
    ['data that nests too deep', { ...given, data: JSON.parse('['.repeat(11) + ']'.repeat(11)) }, 'data'],
    ['data that is too large', { ...given, data: 'x'.repeat(1_001) }, 'data'],
    ['half a character', { ...given, data: { name: '\ud800' } }, 'data.name'],
    ['a day that is none', { ...given, time: '2026-13-01T00:00:00Z' }, 'time'],
  ])('is refused when it is or has %s', async (_, event, field) => {
    const { received, fields } = await read(event)
    expect(received).toBeUndefined()
    expect(fields[0]).toMatch(new RegExp(`^${field}`))
    expect(fields).not.toHaveLength(0)
  })

  it('leaves prototypes alone whatever its keys are called', async () => {
    const data = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}')
    const { received } = await read({ ...given, data })
    expect(JSON.stringify(received!.payload)).toBe(JSON.stringify(data))
    expect(Object.getPrototypeOf(received!.payload)).toBe(Object.prototype)
    expect('admin' in {}).toBe(false)
    const inherited = Object.assign(Object.create({ id: '1', source: '/lamps' }), {
      specversion: '1.0',
      type: 'lamp.lit',
    })
    expect((await read(inherited)).fields).toEqual(['id', 'source'])
  })

  it('is checked by the schema of its type', async () => {
    const definitions = defineEvents({
      'lamp.lit': z.object({ watts: z.number(), room: z.object({ name: z.string() }) }),
    })
    const { fields } = await read({ ...given, data: { watts: 'many', room: {} } }, { definitions })
    expect(fields).toEqual(['data.watts', 'data.room.name'])
    expect((await read({ ...given, type: 'lamp.broken' }, { definitions })).mistakes).toEqual([
      { index: 3, field: 'type', detail: 'is not an event known here' },
    ])
  })
})

describe('ids', () => {
  const idOf = async (more: object, context = {}) => (await read({ ...given, ...more }, context)).received!.id

  it('makes one id of source and id, apart for every tenant', async () => {
    expect(await idOf({})).toBe(await idOf({ data: 1, type: 'lamp.broken' }))
    const others = await Promise.all([
      idOf({ id: '2' }),
      idOf({ source: '/lamps2' }),
      idOf({ source: '/lamps1', id: '' + '1' }),
      idOf({}, { tenant: 'castle' }),
      idOf({}, { tenant: undefined }),
    ])
    expect(new Set([await idOf({}), ...others]).size).toBe(6)
  })
})
