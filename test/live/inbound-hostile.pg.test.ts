/** Input that nobody means well with, over raw sockets where a client would not send it. */
import { describe, expect, it } from 'vitest'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { converse, endpoint, head, lamp, openInbound, send, serve } from './inbound-support.ts'

const statusOf = (answered: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answered)?.[1])

describe('a body', () => {
  it('that never ends is given up, and its connection with it', async () => {
    const { ac, address } = await openInbound({ timeout: '200ms' })
    const { ended } = converse(address, [head({ 'content-length': 100 }), '{"specversion":'])
    expect(statusOf(await ended)).toBe(408)
    // By an endpoint with more patience: on a busy machine any body may take so long.
    const patient = endpoint(ac)
    const other = await serve((req, res) => void patient.node(req, res))
    expect((await send(other, lamp('1'))).status).toBe(202)
    expect(await ac.log.read({})).toHaveLength(1)
  })

  it('that trickles is given up as a whole, however often something comes', async () => {
    const { address } = await openInbound({ timeout: '300ms' })
    async function* trickle() {
      yield head({ 'content-length': 100_000 })
      for (;;) {
        yield ' '
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    expect(statusOf(await converse(address, trickle()).ended)).toBe(408)
  })

  it('that says it is too large is refused before any of it is read', async () => {
    const { address } = await openInbound({ maxBytes: '1kB' })
    const { ended } = converse(address, [head({ 'content-length': 1025 })])
    expect(statusOf(await ended)).toBe(413)
  })

  it('that turns out too large is refused as soon as it is', async () => {
    const { address } = await openInbound({ maxBytes: '1kB' })
    async function* flood() {
      yield head({ 'transfer-encoding': 'chunked' })
      for (;;) yield `400\r\n${' '.repeat(1_024)}\r\n`
    }
    expect(statusOf(await converse(address, flood()).ended)).toBe(413)
    expect((await send(address, lamp('1'))).status).toBe(202)
  })

  it('that is larger than its length says is cut there, and the rest is not an event', async () => {
    const { ac, address } = await openInbound()
    const text = JSON.stringify(lamp('1'))
    const rest = JSON.stringify(lamp('2'))
    const { ended } = converse(address, [head({ 'content-length': text.length, connection: 'close' }), text, rest])
    // Node gives the whole connection up when it sees the rest before the answer is out.
    expect([202, 400]).toContain(statusOf(await ended))
    await send(address, lamp('3'))
    expect((await ac.log.read({})).map(({ metadata }) => metadata.source_id)).not.toContain('2')
  })

  it('that ends before its length is no event', async () => {
    const { ac, address } = await openInbound()
    const text = JSON.stringify(lamp('1'))
    const sent = gate()
    const { socket, ended } = converse(
      address,
      (function* () {
        yield head({ 'content-length': text.length + 1 })
        yield text
        sent.open()
      })(),
    )
    await sent.passed
    socket.end()
    await ended
    expect((await send(address, lamp('2'))).status).toBe(202)
    expect((await ac.log.read({})).map(({ metadata }) => metadata.source_id)).toEqual(['2'])
  })

  it('in chunks is a body like any other', async () => {
    const { address } = await openInbound()
    const text = JSON.stringify(lamp('1'))
    const chunks = text.match(/.{1,7}/g)!.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
    const { ended } = converse(address, [
      head({ 'transfer-encoding': 'chunked', connection: 'close' }),
      ...chunks,
      '0\r\n\r\n',
    ])
    expect(statusOf(await ended)).toBe(202)
  })

  it.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['no JSON', '{"specversion"'],
    ['brackets without end', '['.repeat(200_000)],
    ['a byte order mark', `\ufeff${JSON.stringify(lamp('1'))}`],
    ['bytes that are not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    ['a half character in an escape', JSON.stringify(lamp('1')).replace('9', '"\\ud800"')],
    ['the character that Postgres cannot keep', JSON.stringify(lamp('1')).replace('9', '"\\u0000"')],
    [
      'data that nests deeper than the log takes',
      `{"specversion":"1.0","id":"1","source":"s","type":"lamp.lit","data":${'['.repeat(900)}${']'.repeat(900)}}`,
    ],
    ['an array', '[]'],
    ['a number', '1e400'],
  ])('of %s is refused with 400', async (_, body) => {
    const { ac, address } = await openInbound()
    expect((await send(address, body)).status).toBe(400)
    expect(await ac.log.read({})).toEqual([])
  })

  it('with the names of prototypes is stored as it is and changes nothing else', async () => {
    const { ac, address } = await openInbound()
    const data = '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}, "toString": 1}'
    const event = `{"specversion":"1.0","id":"1","source":"s","type":"lamp.lit","__proto__":{"tenant":"castle"},"data":${data}}`
    const { status, body } = await send(address, event)
    expect(status).toBe(202)
    const stored = await ac.log.get(body.events![0]!.id)
    expect(JSON.parse(JSON.stringify(stored!.payload))).toEqual(JSON.parse(data))
    expect(stored!.tenant).toBeNull()
    expect('polluted' in {}).toBe(false)
  })

  it('with a million members is refused by their number', async () => {
    const { address } = await openInbound({ maxBytes: '4MB' })
    const batch = { headers: { 'content-type': 'application/cloudevents-batch+json' } }
    const { status, body } = await send(address, `[${'0,'.repeat(999_999)}0]`, batch)
    expect([status, body.detail]).toEqual([413, expect.stringContaining('1000000 events')])
  })

  it('with more mistakes than are told says how many there are', async () => {
    const { address } = await openInbound()
    const { status, body } = await send(
      address,
      Array.from({ length: 1_000 }, () => ({})),
    )
    expect(status).toBe(400)
    expect(body.errors).toHaveLength(1_000)
    expect(body).toMatchObject({ omitted: 3_000 })
  })
})

describe('a request', () => {
  it.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('that is a %s is answered with 405', async (method) => {
    const { address } = await openInbound()
    const { status, headers } = await send(address, lamp('1'), { method })
    expect([status, headers.get('allow')]).toEqual([405, 'POST'])
  })

  it.each(['HEAD', 'PROPFIND'])('that is a %s is answered with 405 too', async (method) => {
    const { address } = await openInbound()
    const { ended } = converse(address, [`${method} / HTTP/1.1\r\nhost: house\r\nconnection: close\r\n\r\n`])
    expect(statusOf(await ended)).toBe(405)
  })

  it('with a method to override it stays what it is', async () => {
    const { address } = await openInbound()
    const headers = { 'x-http-method-override': 'POST', 'content-type': 'application/cloudevents+json' }
    expect((await send(address, undefined, { method: 'GET', headers })).status).toBe(405)
  })

  it('with a body that is packed or no CloudEvent is answered with 415', async () => {
    const { address } = await openInbound()
    const types = [
      { 'content-encoding': 'gzip' },
      { 'content-type': 'application/json' },
      { 'content-type': 'text/html' },
    ]
    for (const headers of types) expect((await send(address, lamp('1'), { headers })).status).toBe(415)
  })

  it('with a header that no server takes does not reach the log', async () => {
    const { ac, address } = await openInbound()
    const { ended } = converse(address, [head({ 'ce-id': 'x'.repeat(100_000), 'content-length': 0 })])
    expect(statusOf(await ended)).toBe(431)
    expect(await ac.log.read({})).toEqual([])
  })

  it.each([
    ['a host that is none', 'POST / HTTP/1.1\r\nhost: a b c\r\n'],
    ['a path that leads elsewhere', 'POST //evil.example/%2e%2e HTTP/1.1\r\nhost: house\r\n'],
    ['an absolute address', 'POST http://evil.example/ HTTP/1.1\r\nhost: house\r\n'],
    ['an asterisk', 'POST * HTTP/1.1\r\nhost: house\r\n'],
  ])('with %s is judged by what it brings', async (_, start) => {
    const { address } = await openInbound()
    const { ended } = converse(address, [`${start}content-length: 0\r\nconnection: close\r\n\r\n`])
    expect(statusOf(await ended)).toBe(401)
  })

  it('with headers that are not percent-encoded UTF-8 is refused', async () => {
    const { address } = await openInbound()
    const headers = {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': '%ff',
      'ce-source': 's',
      'ce-type': 'lamp.lit',
    }
    expect((await send(address, '1', { headers })).status).toBe(400)
  })
})
