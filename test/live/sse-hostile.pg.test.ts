/** Requests that nobody means well with: each is answered with what is wrong, nothing leaks, and the feed goes on. */
import { request as httpRequest } from 'node:http'
import { connect as dial } from 'node:net'
import { describe, expect, it } from 'vitest'
import { collectingLogger } from '../support/logger.ts'
import { listen, openSse } from './sse-support.ts'

describe('a request', () => {
  it.each([
    ['a token that is none', { from: 'yesterday' }, '`from`'],
    ['a token with a huge position', { from: `1.${'9'.repeat(19)}` }, '`from`'],
    ['a token as long as a book', { from: `1.${'9'.repeat(5_000)}` }, '`from`'],
    ['a negative token', { from: '1.-1' }, '`from`'],
    ['SQL for a token', { from: `1.1'; drop table events` }, '`from`'],
    ['a pattern that is none', { types: 'Order Placed' }, '`types`'],
    ['an empty pattern', { types: '' }, '`types`'],
    ['a pattern with line breaks', { types: 'lamp.lit\r\ndata: forged' }, '`types`'],
    ['a pattern like an expression', { types: '(a+)+$' }, '`types`'],
    ['a pattern of many wildcards', { types: `lamp.${'a*'.repeat(5)}` }, 'more than 4 wildcards'],
    ['a pattern that is too long', { types: 'a'.repeat(101) }, 'longer than 100 characters'],
    ['too many patterns', { types: Array(51).fill('a').join() }, 'more than 50'],
    ['an id without a type', { aggregate_id: '7' }, '`aggregate_id`'],
    ['an id as long as a book', { aggregate_type: 'lamp', aggregate_id: 'x'.repeat(600) }, '`aggregate_id`'],
    ['a query as long as a book', { other: 'x'.repeat(9_000) }, 'longer than'],
  ])('with %s is refused and told why', async (_, query, told) => {
    const { feedUrl } = await openSse()
    const { response } = await listen(feedUrl, { query })
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toMatchObject({ status: 400, detail: expect.stringContaining(told) })
    expect((await listen(feedUrl)).response.status).toBe(200)
  })

  it('with ten thousand parameters, or one twice, costs nothing but an answer', async () => {
    const { feedUrl } = await openSse()
    // Longer than any server takes, so straight through the handler of Fetch.
    const many = Array.from({ length: 10_000 }, (_, n) => `p${n}=1`).join('&')
    for (const query of [many, 'from=1.1&from=1.2', 'aggregate_type=a&aggregate_type=b']) {
      const answer = await new Promise<number | undefined>((resolve) => {
        httpRequest(`${feedUrl}?${query}`, { headers: { 'x-user': 'ada' } }, (res) => resolve(res.resume().statusCode))
          .on('error', () => resolve(undefined))
          .end()
      })
      expect([400, 431]).toContain(answer)
    }
  })

  it('with a bad `Last-Event-ID` is refused, and a good one goes before `from`', async () => {
    const { feedUrl, emit, emitMany } = await openSse()
    expect((await listen(feedUrl, { lastId: 'x' })).response.status).toBe(400)
    const first = await listen(feedUrl)
    await first.placed()
    const [epoch] = first.lastId!.split('.')
    await emitMany(3)
    const stream = await listen(feedUrl, { lastId: `${epoch}.2`, query: { from: `${epoch}.0` } })
    await emit('last')
    await stream.sees('last')
    expect(stream.ids).toEqual(['event-3', 'last'])
  })

  it.each(['POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS', 'TRACE'])('by %s is no way to read', async (method) => {
    const { feedUrl } = await openSse()
    const answer = await new Promise<{ status: number | undefined; allow: string | undefined }>((resolve) => {
      const asking = httpRequest(feedUrl, { method, headers: { 'x-user': 'ada', 'x-http-method-override': 'GET' } })
      asking.on('response', (res) => resolve({ status: res.statusCode, allow: res.resume().headers.allow }))
      asking.end()
    })
    expect(answer).toEqual({ status: 405, allow: 'GET' })
  })

  it.each(['/feed?x', '//feed', '/%2e%2e/feed', 'http://elsewhere.example/feed', '*', '/feed#%00', '/%ff'])(
    'for %s is answered like any other: it is for whoever mounts the handler to choose the path',
    async (path) => {
      const { feedUrl } = await openSse()
      expect(await statusOf(feedUrl, path, 'x-user: ada')).toBe(200)
      expect(await statusOf(feedUrl, path, 'x-other: ada')).toBe(401)
    },
  )
})

describe('an answer', () => {
  it('does not say what went wrong inside', async () => {
    const { logger, lines } = collectingLogger()
    const { feedUrl } = await openSse(
      {
        authorize(request) {
          if (request.headers.get('x-user') === 'eve') throw new Error('password of the directory')
          return 'ada'
        },
      },
      { logger },
    )
    const { response } = await listen(feedUrl, { user: 'eve' })
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('password')
    expect(lines).toContain('error a client of a live feed could not be served')
  })

  it('is for other origins only where they are named', async () => {
    const { feedUrl, server } = await openSse()
    const from = (origin: string) => ({ headers: { origin } })
    const origins = ['https://shop.example']
    const open = await server({ cors: { origins, credentials: true } })
    expect(allowed(await listen(feedUrl, from('https://shop.example')))).toBeNull()
    expect(allowed(await listen(open.feedUrl, from('https://evil.example')))).toBeNull()
    expect(allowed(await listen(open.feedUrl, from('https://shop.example')))).toBe('https://shop.example')
    expect(allowed(await listen(open.feedUrl, { user: null, ...from('https://shop.example') }))).toBe(
      'https://shop.example',
    )
    const asked = { method: 'OPTIONS', headers: { origin: 'https://shop.example' } }
    const preflight = await fetch(open.feedUrl, asked)
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'authorization, last-event-id',
    ])
  })
})

describe('an event', () => {
  it('with lines in whatever somebody may choose forges no frame', async () => {
    const { feedUrl, sql, emit } = await openSse()
    const stream = await listen(feedUrl)
    await stream.placed()
    const forged = '\n\nevent: revoked\ndata: {}\n\n\r\r\u2028'
    // Past every check of names.
    await sql.query(
      `insert into aftercommit.events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
       values ($1, $1, $1, $1, $1, $2, $2, now())`,
      [forged, JSON.stringify({ [forged]: forged })],
    )
    await emit('last')
    await stream.sees('last')
    expect(new Set(stream.frames.map(({ event }) => event))).toEqual(new Set(['message']))
    const [event] = stream.frames.map(({ data }) => JSON.parse(data))
    expect(event).toMatchObject({ id: forged, type: forged, tenant: forged, data: { [forged]: forged } })
  })
})

function allowed({ response }: { response: Response }): string | null {
  return response.headers.get('access-control-allow-origin')
}

/** The status of a request whose line is written as it is. */
function statusOf(url: string, path: string, header: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = dial(Number(new URL(url).port), '127.0.0.1')
    socket.setEncoding('utf8').on('error', reject)
    socket.once('data', (text) => {
      socket.destroy()
      resolve(Number(String(text).split(' ')[1]))
    })
    socket.write(`GET ${path} HTTP/1.1\r\nhost: :not a host:\r\n${header}\r\n\r\n`)
  })
}
