import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../../src/events/index.ts'
import { createTestClock } from '../../../src/runtime/index.ts'
import { closedPort, httpReceiver } from '../../support/receivers.ts'
import { dnsReceiver } from '../../support/receivers-dns.ts'
import { failureOf, prepare, requestFor } from './support.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

describe('a webhook', () => {
  it('sends the event as CloudEvents JSON, digit for digit', async () => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', { url: `${receiver.url}/hook` })
    const payload = parseJson('{"total": 9007199254740993, "price": 0.12345678901234567890}')
    const result = await action.run(requestFor({ payload, aggregate: { type: 'order', id: '42' } }))
    expect(result).toMatchObject({ actionType: 'webhook', success: true, message: 'HTTP 200' })
    const [call] = receiver.calls
    expect(call).toMatchObject({ method: 'POST', path: '/hook' })
    expect(call?.headers['content-type']).toBe('application/cloudevents+json')
    expect(call?.body).toContain('"data":{"total":9007199254740993,"price":0.12345678901234567890}')
    expect(parseJson(call?.body ?? '')).toMatchObject({ id: 'evt-1', type: 'order.placed', aggregateid: '42' })
    expect(parseJson(call?.body ?? '')).toMatchObject({ source: 'urn:aftercommit:test' })
  })

  it('renders its address, headers and body', async () => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', {
      url: `${receiver.url}/orders/{{ id }}?who={{ name }}`,
      method: 'PUT',
      headers: { 'X-Total': '{{ total }}', Authorization: { reveal: () => 'Bearer canary-token' } },
      body: { id: '{{ id }}', total: '{{ total }}', text: 'for {{ name }}', nested: [{ deep: '{{ tags }}' }], kept: 1 },
    })
    await action.run(requestFor({ payload: { id: 'a/b', total: 12, name: 'A & "B"', tags: ['x'] } }))
    expect(receiver.calls).toMatchObject([
      {
        method: 'PUT',
        path: '/orders/a%2Fb?who=A%20%26%20%22B%22',
        headers: { 'x-total': '12', authorization: 'Bearer canary-token', 'content-type': 'application/json' },
      },
    ])
    expect(JSON.parse(receiver.calls[0]?.body ?? '')).toEqual({
      ...{ id: 'a/b', total: 12, text: 'for A & "B"', nested: [{ deep: ['x'] }], kept: 1 },
    })
  })

  it.each(['GET', 'DELETE'])('with the method %s has no body unless told', async (method) => {
    const receiver = await httpReceiver()
    await prepare('webhook', { url: receiver.url, method }).run(requestFor({ payload: { a: 1 } }))
    expect(receiver.calls).toMatchObject([{ method, body: '' }])
    expect(receiver.calls[0]?.headers['content-type']).toBeUndefined()
  })

  it.each(['text/{{ kind }}', '{{ kind }}', 'text/html; charset={{ kind }}'])(
    'is refused with the content type %j, by which nobody knows how to escape the body',
    async (value) => {
      const config = { url: 'https://shop.example/', headers: { 'Content-Type': value }, body: '<b>{{ name }}</b>' }
      const error = await failureOf(() => prepare('webhook', config))
      expect(error).toMatchObject({ code: 'OB012', message: expect.stringContaining('content type') })
    },
  )

  it('escapes HTML whose content type mentions JSON in a parameter', async () => {
    const receiver = await httpReceiver()
    const headers = { 'content-type': 'text/html; profile=json' }
    const action = prepare('webhook', { url: receiver.url, headers, body: '<b>{{ name }}</b>' })
    await action.run(requestFor({ payload: { name: '<script>' } }))
    expect(receiver.calls[0]?.body).toBe('<b>&lt;script&gt;</b>')
  })

  it('sends text under a content type of its own', async () => {
    const receiver = await httpReceiver()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const action = prepare('webhook', { url: receiver.url, headers, body: 'name={{ name }}&a=b' })
    await action.run(requestFor({ payload: { name: 'x&admin=1' } }))
    expect(receiver.calls[0]?.body).toBe('name=x%26admin%3D1&a=b')
  })

  it('carries the trace of the event', async () => {
    const receiver = await httpReceiver()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await prepare('webhook', { url: receiver.url }).run(requestFor({ metadata: { traceparent } }))
    expect(receiver.calls[0]?.headers.traceparent).toBe(traceparent)
  })

  it('leaves headers alone that the action sets itself', async () => {
    const receiver = await httpReceiver()
    const headers = { 'Content-Type': 'application/vnd.shop+json', 'User-Agent': 'shop', traceparent: 'mine' }
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const action = prepare('webhook', { url: receiver.url, headers, body: {} })
    await action.run(requestFor({ metadata: { traceparent } }))
    expect(receiver.calls[0]?.headers).toMatchObject({
      ...{ 'content-type': 'application/vnd.shop+json', 'user-agent': 'shop', traceparent: 'mine' },
    })
  })

  it('is one destination per origin', () => {
    expect(prepare('webhook', { url: 'https://erp.example.com/a/{{ event.id }}' }).destination).toBe(
      'webhook https://erp.example.com',
    )
    expect(prepare('webhook', { url: 'https://erp.example.com/', retry: false }).singleAttempt).toBe(true)
  })
})

describe('the signature of a webhook', () => {
  it('fits the bytes that arrive, with the same id and a new time for every attempt', async () => {
    const receiver = await httpReceiver()
    const clock = createTestClock({ now: new Date() })
    const action = prepare('webhook', { url: receiver.url, secret: { reveal: () => secret } }, { clock })
    await action.run(requestFor({ payload: { name: 'Grüße \u2028' } }))
    await clock.advance(5_000)
    await action.run(requestFor({ payload: { name: 'Grüße \u2028' }, attempt: 2 }))
    const [first, second] = receiver.calls
    for (const call of receiver.calls) {
      expect(() => new Webhook(secret).verify(call.body, call.headers as Record<string, string>)).not.toThrow()
      expect(() => new Webhook(secret).verify(`${call.body} `, call.headers as Record<string, string>)).toThrow()
    }
    expect(first?.headers['webhook-id']).toMatch(/^msg_[\w-]{32}$/)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(Number(second?.headers['webhook-timestamp'])).toBe(Number(first?.headers['webhook-timestamp']) + 5)
  })

  it('is there once per secret while one replaces another', async () => {
    const receiver = await httpReceiver()
    const next = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    await prepare('webhook', { url: receiver.url, secret: [next, secret], method: 'GET' }).run(requestFor())
    const headers = receiver.calls[0]?.headers as Record<string, string>
    for (const accepted of [next, secret]) expect(() => new Webhook(accepted).verify('', headers)).not.toThrow()
  })

  it('has another id for another event, observer or action', async () => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', { url: receiver.url })
    for (const change of [{}, { id: 'evt-2' }, { observer: 'other' }, { action: 'other' }]) {
      await action.run(requestFor(change))
    }
    expect(new Set(receiver.calls.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
    expect(receiver.calls[0]?.headers['webhook-signature']).toBeUndefined()
  })

  it('is not made with a secret that protects nothing', async () => {
    const error = await failureOf(() => prepare('webhook', { url: 'https://a.example/', secret: { reveal: () => '' } }))
    expect(error).toMatchObject({ code: 'OB012', path: ['secret'] })
  })
})

describe('the answer to a webhook', () => {
  it.each([
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [409, false],
    [410, false],
    [425, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [301, false],
    [307, false],
  ])('with %i is a failure, worth another attempt: %s', async (status, transient) => {
    const receiver = await httpReceiver((response) => response.writeHead(status, { location: '/' }).end('the reason'))
    const error = await failureOf(() => prepare('webhook', { url: receiver.url }).run(requestFor()))
    expect(error).toMatchObject({ code: 'OB006', transient, status, gone: status === 410 })
    expect(error.detail.response).toEqual({ status, body: 'the reason' })
    expect(error.message).toContain(String(status))
    expect(error.message).not.toContain('the reason')
    expect(receiver.calls).toHaveLength(1)
  })

  it('may ask for time', async () => {
    const receiver = await httpReceiver((response) => response.writeHead(429, { 'retry-after': '30' }).end())
    const error = await failureOf(() => prepare('webhook', { url: receiver.url }).run(requestFor()))
    expect(error.retryAfterMs).toBe(30_000)
  })

  it('is kept in part, escaped, and without what cannot be stored', async () => {
    const junk = Buffer.concat([
      Buffer.from('a\u0000b\r\n<script>\u202e'),
      Buffer.from([0xff, 0xfe]),
      Buffer.alloc(1_000_000, 120),
    ])
    const receiver = await httpReceiver((response) => response.writeHead(500).end(junk))
    const error = await failureOf(() => prepare('webhook', { url: receiver.url }).run(requestFor()))
    const { body = '' } = error.detail.response ?? {}
    expect(body).toMatch(/^a\\u0000b\\u000d\\u000a<script>\\u202e/)
    expect(body.length).toBeLessThan(300)
    expect(body).not.toMatch(/[\u0000-\u001f]/)
  })

  it('that does not come in time is OB005, worth another attempt', async () => {
    const receiver = await httpReceiver(() => {})
    const error = await failureOf(() => prepare('webhook', { url: receiver.url, timeout: '100ms' }).run(requestFor()))
    expect(error).toMatchObject({ code: 'OB005', transient: true })
  })

  it('that cannot come, as nobody listens, is OB006, worth another attempt', async () => {
    const url = `http://127.0.0.1:${await closedPort()}/`
    const error = await failureOf(() => prepare('webhook', { url }).run(requestFor()))
    expect(error).toMatchObject({ code: 'OB006', transient: true, message: expect.stringContaining('ECONNREFUSED') })
  })
})

describe('the caller’s signal', () => {
  it('ends a webhook with its own reason', async () => {
    const stopping = new AbortController()
    const receiver = await httpReceiver(() => stopping.abort(new Error('stopping')))
    const run = prepare('webhook', { url: receiver.url }).run(requestFor({ signal: stopping.signal }))
    await expect(run).rejects.toThrow('stopping')
  })
})

describe('an address that is not allowed', () => {
  it.each([
    ...[
      'http://127.0.0.1/',
      'http://2130706433/',
      'http://[::ffff:7f00:1]/',
      'http://169.254.169.254/',
      'http://localhost/',
    ],
    ...['ftp://a.example/', 'https://user:pw@a.example/', 'http://a.example:25/', 'not a url', 'https://a.example/ x'],
  ])('such as %s is refused when it is loaded', async (url) => {
    const error = await failureOf(() => prepare('webhook', { url }, { allow: [] }))
    expect(error).toMatchObject({ code: 'OB012', path: ['url'] })
  })

  it.each([
    '{{ url }}',
    'https://{{ host }}/',
    'https://a.example:{{ port }}/',
    '{{ scheme }}://a.example/',
    'https://a{{ b }}',
  ])('is not made from an event: %s', async (url) => {
    const error = await failureOf(() => prepare('webhook', { url }))
    expect(error.path).toEqual(['url'])
    expect(error.transient).toBe(false)
  })

  it('is refused when its name turns out to lead inside, and the dead letter says what to do', async () => {
    const receiver = await httpReceiver()
    const { server } = await dnsReceiver(() => ['127.0.0.1'])
    const http = { dns: { servers: [server], hostsFile: '/nonexistent' } }
    const action = prepare('webhook', { url: `http://rebind.example:${receiver.port}/` }, { allow: [], http })
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({
      code: 'OB012',
      transient: false,
      message: expect.stringContaining('[network] allow'),
    })
    expect(receiver.connections).toBe(0)
  })
})

describe('what an event makes of a template', () => {
  it.each<[string, { path?: string; headers?: Record<string, string> }, string]>([
    ['a header with a line break', { headers: { 'x-a': '{{ value }}' } }, 'a\r\nx-evil: 1'],
    ['a header outside of Latin-1', { headers: { 'x-a': '{{ value }}' } }, '漢'],
    ['a header that is too long', { headers: { 'x-a': '{{ value }}' } }, 'x'.repeat(9_000)],
    ['a path that climbs', { path: '/a/{{ value }}/b' }, '..'],
    ['an address without its value', { path: '/a/{{ missing }}' }, ''],
  ])('is not sent when it is %s', async (_, { path = '/', ...config }, value) => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', { url: receiver.url + path, ...config })
    const error = await failureOf(() => action.run(requestFor({ payload: { value } })))
    expect(error).toMatchObject({ code: 'OB003', transient: false })
    expect(receiver.connections).toBe(0)
  })

  it('never adds a header, a query parameter or a member of the body', async () => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', { url: `${receiver.url}/?q={{ value }}`, body: { value: 'x {{ value }}' } })
    await action.run(requestFor({ payload: { value: '","admin":true,"x":"&admin=1#\r\n{{ env.HOME }}' } }))
    const [call] = receiver.calls
    expect(new URL(call?.path ?? '', receiver.url).searchParams.has('admin')).toBe(false)
    expect(Object.keys(JSON.parse(call?.body ?? ''))).toEqual(['value'])
    expect(call?.body).toContain('{{ env.HOME }}')
  })
})

describe('mistakes in the keys of a webhook', () => {
  it('are reported all at once, each with its place', async () => {
    const error = await failureOf(() =>
      prepare('webhook', {
        url: 'http://10.0.0.1/',
        method: 'GET',
        headers: { Host: 'a', 'bad name': 'b', 'webhook-id': 'c', 'x-d': '{{ broken', 'X-E': 'a\nb' },
        body: { a: '{{ x | nofilter }}' },
        secret: 'short',
      }),
    )
    const { mistakes } = error as unknown as { mistakes: { path: unknown[] }[] }
    expect(mistakes.map(({ path }) => path.join('.')).sort()).toEqual(
      [
        'secret',
        'url',
        'headers.Host',
        'headers.bad name',
        'headers.webhook-id',
        'headers.x-d',
        'headers.X-E',
        'body',
        'body',
      ].sort(),
    )
  })

  it('include keys that do not exist', () => {
    expect(() => prepare('webhook', { url: 'https://a.example/', urll: 'x' })).toThrow(/urll/)
    expect(() => prepare('webhook', { url: 'https://a.example/', timeout: '10' })).toThrow(/duration/)
    expect(() => prepare('webhook', { url: 'https://a.example/', method: 'TRACE' })).toThrow()
  })
})

describe('a preview', () => {
  it('shows what would be sent, masks secrets and sends nothing', async () => {
    const receiver = await httpReceiver()
    const action = prepare('webhook', {
      url: `${receiver.url}/a/{{ id }}`,
      headers: { 'x-key': { reveal: () => 'canary' }, authorization: 'Bearer canary', 'x-plain': '{{ id }}' },
      body: { id: '{{ id }}' },
      secret: { reveal: () => `${secret}` },
    })
    const preview = action.preview(requestFor({ payload: { id: 7 } }))
    expect(preview.content).toMatchObject({
      method: 'POST',
      url: `${receiver.url}/a/7`,
      body: '{"id":7}',
      signed: true,
    })
    expect(preview.content.headers).toMatchObject({ 'x-key': '***', authorization: '***', 'x-plain': '7' })
    expect(JSON.stringify(preview)).not.toMatch(/canary|whsec/)
    expect(receiver.connections).toBe(0)
  })
})
