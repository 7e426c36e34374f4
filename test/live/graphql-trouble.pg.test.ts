/** Clients that are slow, many or malicious, and servers that end. */
import { createServer } from 'node:http'
import { connect as dial } from 'node:net'
import type pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { impatientClock } from '../log/support/hurried-clock.ts'
import { instance } from '../log/support/open-log.ts'
import { heldTimers } from '../subscriptions/support/held-timers.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import {
  ALL,
  clientsOf,
  connectedSocket,
  openGraphql,
  type RawSocket,
  rawSocket,
  serveGraphql,
  sseClient,
  subscribe,
  wsClient,
} from './graphql-support.ts'
import { listen } from './inbound-support.ts'

const WITH_PAYLOAD = 'subscription ($from: String = "1.0") { events(from: $from) { id token payload } }'

/** More than the buffers of the kernel take, if there are many. */
async function emitLarge(sql: pg.Client, n: number, after = 0): Promise<void> {
  await sql.query(
    `select aftercommit.emit('lamp.lit', null, null, jsonb_build_object('text', repeat('x', 20000)), id => 'large-' || n)
       from generate_series($1::int + 1, $1::int + $2::int) n`,
    [after, n],
  )
}

/** A WebSocket that was upgraded, says at most one message, and never closes anything. */
function dialMute(address: string, message: Buffer = Buffer.alloc(0)) {
  const { hostname, port } = new URL(address)
  const socket = dial({ port: Number(port), host: hostname, allowHalfOpen: true })
  let answer = ''
  const isRefused = new Promise<void>((resolve) => {
    socket.on('data', (data) => {
      if (answer === '') socket.write(message)
      answer += String(data)
      if (answer.includes('Forbidden')) resolve()
    })
  })
  const head = ['GET /graphql HTTP/1.1', 'host: x', 'upgrade: websocket', 'connection: upgrade']
  const key = ['sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']
  socket.on('error', () => {}).resume()
  socket.write([...head, ...key, 'sec-websocket-protocol: graphql-transport-ws', '', ''].join('\r\n'))
  onTestFinished(() => void socket.destroy())
  const closed = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  return { isRefused, closed }
}

/** A masked text frame of a client that nobody knows. */
const WRONG_INIT = toFrame(JSON.stringify({ type: 'connection_init', payload: { authorization: 'wrong' } }))

function toFrame(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
}

const largeIds = (n: number) => Array.from({ length: n }, (_, at) => `large-${at + 1}`)

interface Result {
  readonly data: { events: { id: string; token: string } } | null
  readonly errors?: { extensions: { code: string; token: string } }[]
}

/** What a subscription got over a raw socket. */
function gotten({ messages }: RawSocket) {
  const results = messages.filter(({ type }) => type === 'next').map(({ payload }) => payload as Result)
  return {
    ids: results.flatMap(({ data }) => (data ? [data.events.id] : [])),
    errors: results.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions)),
  }
}

describe('a slow client', () => {
  it('over a WebSocket is told that it lagged and where to go on; others notice nothing', async () => {
    const served = await openGraphql({ maxBuffered: { events: 200 } })
    const slow = await connectedSocket(served.socketAddress)
    slow.send({ type: 'subscribe', id: 's', payload: { query: WITH_PAYLOAD } })
    const quick = subscribe(wsClient(served.socketAddress, { user: 'bob' }), ALL)
    await served.emit('first')
    await Promise.all([quick.sees('first'), eventually(() => gotten(slow).ids.length === 1)])
    slow.socket.pause()
    for (let batch = 0; batch < 10; batch++) {
      await emitLarge(served.sql, 100, batch * 100)
      await quick.sees(`large-${batch * 100 + 100}`)
    }
    await eventually(async () =>
      /aftercommit_live_lagged_total\{transport="graphql-ws"\} 1/.test(await served.ac.metrics()),
    )
    slow.socket.resume()
    await eventually(() => slow.messages.some(({ type }) => type === 'complete'))
    const { ids, errors } = gotten(slow)
    expect(errors).toEqual([{ code: 'LAGGED', token: expect.any(String) }])
    const rest = subscribe(wsClient(served.socketAddress), WITH_PAYLOAD, { from: errors[0]!.token })
    await rest.sees('large-1000')
    expect([...ids, ...rest.ids]).toEqual(['first', ...largeIds(1_000)])
    expect(quick.ids).toEqual(['first', ...largeIds(1_000)])
  })

  it('over server-sent events is told so too', async () => {
    const served = await openGraphql({ maxBuffered: { events: 50 } })
    const slow = slowStream(served.address, WITH_PAYLOAD)
    await served.emit('first')
    await eventually(() => slow.text().includes('"first"'))
    slow.socket.pause()
    await emitLarge(served.sql, 1_000)
    await eventually(async () =>
      /aftercommit_live_lagged_total\{transport="graphql-sse"\} 1/.test(await served.ac.metrics()),
    )
    slow.socket.resume()
    await eventually(() => slow.text().includes('event: complete'))
    const token = /"code":"LAGGED","token":"([\d.]+)"/.exec(slow.text())?.[1]
    const ids = [...slow.text().matchAll(/"id":"([\w-]+)"/g)].map(([, id]) => id)
    const rest = subscribe(sseClient(served.address), WITH_PAYLOAD, { from: token })
    await rest.sees('large-1000')
    expect([...ids, ...rest.ids]).toEqual(['first', ...largeIds(1_000)])
  })

  it('that takes nothing at all is cut off, and costs nothing any more', async () => {
    const served = await openGraphql({ heartbeat: '300ms' })
    const slow = slowStream(served.address, WITH_PAYLOAD)
    await served.emit('first')
    await eventually(() => slow.text().includes('"first"'))
    slow.socket.pause()
    await emitLarge(served.sql, 1_000)
    await eventually(async () => (await clientsOf(served.ac, 'graphql-sse')) === 0)
  })

  it('that does not answer pings is cut off', async () => {
    const heart = heldTimers(777, impatientClock(10_000))
    const served = await openGraphql({ heartbeat: '777ms' }, { clock: heart.clock })
    const beat = async () => {
      await eventually(() => heart.count > 0)
      heart.fire()
    }
    const deaf = new WebSocket(served.socketAddress, 'graphql-transport-ws', { autoPong: false })
    const code = new Promise((resolve) => deaf.on('close', resolve))
    await beat()
    await beat()
    expect(await code).toBe(1006)
    const patient = await connectedSocket(served.socketAddress)
    for (let beats = 1; beats <= 3; beats++) {
      const pinged = new Promise((resolve) => patient.socket.once('ping', resolve))
      await beat()
      await pinged
      // Its answer to the ping is there when the answer to what it says afterwards is here.
      patient.send({ type: 'ping' })
      await eventually(() => patient.messages.filter(({ type }) => type === 'pong').length === beats)
    }
    expect(patient.socket.readyState).toBe(WebSocket.OPEN)
  })
})

describe('a WebSocket', () => {
  const init = { type: 'connection_init', payload: { authorization: 'Bearer ada' } }
  const endless = { type: 'subscribe', id: '1', payload: { query: ALL } }

  it.each<[string, unknown[], number]>([
    ['no JSON', ['hello'], 4400],
    ['nothing', [''], 4400],
    ['a message of no type', [{}], 4400],
    ['a message of a type that nobody knows', [{ type: 'hack' }], 4400],
    ['a message that only servers send', [init, { type: 'next', id: '1', payload: { data: {} } }], 4400],
    ['brackets without end', ['['.repeat(60_000)], 4400],
    ['a subscription without a query', [init, { type: 'subscribe', id: '1', payload: {} }], 4400],
    ['a subscription whose id is no text', [init, { type: 'subscribe', id: 1, payload: { query: ALL } }], 4400],
    ['a subscription before it was let in', [endless], 4401],
    ['two beginnings', [init, init], 4429],
    ['two subscriptions of one id', [init, endless, endless], 4409],
    ['no token', [{ type: 'connection_init' }], 4403],
    ['a token that is no header', [{ type: 'connection_init', payload: { authorization: 'Bearer a\nb: c' } }], 4403],
    ['more than a message may have', ['x'.repeat(100_000)], 1009],
  ])('with %s is closed as the protocol says', async (_, messages, code) => {
    const served = await openGraphql()
    const raw = await rawSocket(served.socketAddress)
    for (const message of messages) {
      raw.send(message)
      if (message === init) await Promise.race([raw.closed, eventually(() => raw.messages.length > 0)])
    }
    expect((await raw.closed).code).toBe(code)
    const fine = subscribe(wsClient(served.socketAddress), '{ version }')
    await fine.ended
    expect(fine.events).toHaveLength(1)
  })

  it('of another protocol, or with bytes that are no frames, is closed', async () => {
    const served = await openGraphql()
    const other = await rawSocket(served.socketAddress, { protocol: 'graphql-ws' })
    // The client itself gives up a connection whose protocol was not confirmed.
    expect([1006, 4406]).toContain((await other.closed).code)
    const broken = await rawSocket(served.socketAddress)
    Reflect.get(broken.socket, '_socket').write(Buffer.from([0xff, 0xff, 0xff, 0xff]))
    expect((await broken.closed).code).toBe(1002)
  })

  it('that never begins is closed', async () => {
    const served = await openGraphql()
    const raw = await rawSocket(served.socketAddress)
    expect((await raw.closed).code).toBe(4408)
  })

  it('has as many subscriptions as it may, under any name', async () => {
    const served = await openGraphql({ maxSubscriptions: 3 })
    await served.emit('e1')
    const raw = await connectedSocket(served.socketAddress)
    for (const id of ['__proto__', 'constructor', '3', '4'])
      raw.send({ type: 'subscribe', id, payload: { query: ALL } })
    const came = (kind: string) => raw.messages.filter(({ type }) => type === kind).map(({ id }) => id)
    await eventually(() => came('next').length === 3 && came('error').length > 0)
    expect(came('error')).toEqual(['4'])
    raw.send({ type: 'complete', id: '__proto__' })
    await eventually(async () => (await clientsOf(served.ac, 'graphql-ws')) === 2)
    raw.send({ type: 'subscribe', id: '5', payload: { query: ALL } })
    await eventually(() => raw.messages.some(({ type, id }) => type === 'next' && id === '5'))
  })

  it('of a page of another origin is refused unless that is named', async () => {
    const served = await openGraphql({ cors: { origins: ['https://shop.example'] } })
    const host = new URL(served.address).host
    const outcome = async (origin: string) =>
      (await rawSocket(served.socketAddress, { headers: { origin } })).socket.readyState
    expect(await outcome('https://evil.example')).toBe(WebSocket.CLOSED)
    expect(await outcome('null')).toBe(WebSocket.CLOSED)
    expect(await outcome('https://shop.example')).toBe(WebSocket.OPEN)
    expect(await outcome(`http://${host}`)).toBe(WebSocket.OPEN)
  })

  it('cannot pretend to be a proxy: its parameters set no header but the one of its token', async () => {
    const seen: Headers[] = []
    const served = await openGraphql({
      authorize(request) {
        seen.push(request.headers)
        return 'anybody'
      },
    })
    const raw = await rawSocket(served.socketAddress, { headers: { 'x-real': 'yes' } })
    const payload = {
      headers: { Authorization: 'Bearer ada', 'x-user': 'root' },
      'x-forwarded-for': '10.0.0.1',
      cookie: 'a=b',
    }
    raw.send({ type: 'connection_init', payload })
    await eventually(() => seen.length === 1)
    const headers = Object.fromEntries(seen[0]!)
    expect(headers).toMatchObject({ authorization: 'Bearer ada', 'x-real': 'yes' })
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['x-user']))
    expect(headers['x-forwarded-for'] ?? headers.cookie).toBeUndefined()
  })

  it('that was revoked while it was idle gets nothing for what it asks afterwards', async () => {
    const served = await openGraphql({ identityOf: (user) => ({ session: user }) })
    const raw = await connectedSocket(served.socketAddress)
    await served.ac.emitAuth({ type: 'session_revoked', sessionId: 'ada' })
    await served.emit('e1')
    raw.send({ type: 'subscribe', id: '1', payload: { query: ALL } })
    expect((await raw.closed).code).toBe(4403)
    expect(gotten(raw)).toEqual({ ids: [], errors: [{ code: 'REVOKED' }] })
  })

  it('is told to try again when the database is away', async () => {
    const { url } = await openGraphql()
    const proxy = await createProxy(url)
    const served = await serveGraphql(instance({ database: proxy.url }))
    proxy.reset()
    const raw = await rawSocket(served.socketAddress)
    raw.send(init)
    expect((await raw.closed).code).toBe(1013)
    proxy.pass()
    const fine = await eventually(async () => {
      const one = subscribe(wsClient(served.socketAddress), '{ version }')
      await one.ended
      return one.events.length === 1 && one
    })
    expect(fine.errors).toEqual([])
  })
})

describe('a server', () => {
  it('leaves upgrades of other paths to others, and answers 404 where there is nobody else', async () => {
    const served = await openGraphql()
    const elsewhere = served.socketAddress.replace('/graphql', '/chat')
    expect((await rawSocket(elsewhere)).socket.readyState).toBe(WebSocket.CLOSED)
    const others: string[] = []
    served.server.on('upgrade', (req, socket) => {
      if (req.url === '/graphql') return
      others.push(req.url!)
      socket.end('HTTP/1.1 418 I am a teapot\r\n\r\n')
    })
    await rawSocket(elsewhere)
    expect(others).toEqual(['/chat'])
    expect((await connectedSocket(served.socketAddress)).socket.readyState).toBe(WebSocket.OPEN)
  })

  it('is left as it was by detach, with its clients sent away', async () => {
    const { ac } = await openGraphql()
    const graphql = await ac.live.graphql({ authorize: () => 'anybody' })
    const server = createServer((_, res) => void res.end())
    const address = await listen(server)
    const attachment = await graphql.attach(server, { path: '/live' })
    const raw = await connectedSocket(`${address.replace('http', 'ws')}/live`)
    await attachment.detach()
    await attachment.detach()
    expect((await raw.closed).code).toBe(1001)
    expect(server.listenerCount('upgrade')).toBe(0)
    expect((await fetch(address)).status).toBe(200)
  })

  it('that is closed is not kept open by its clients', async () => {
    const served = await openGraphql()
    const raw = await connectedSocket(served.socketAddress)
    raw.send({ type: 'subscribe', id: '1', payload: { query: ALL } })
    await served.emit('e1')
    await eventually(() => gotten(raw).ids.length === 1)
    await new Promise((resolve) => served.server.close(resolve))
    expect((await raw.closed).code).toBe(1001)
  })

  it('sends its clients away when the instance stops, and takes no more', async () => {
    const served = await openGraphql()
    const idle = await connectedSocket(served.socketAddress)
    await served.ac.stop()
    expect((await idle.closed).code).toBe(1001)
    expect((await rawSocket(served.socketAddress)).socket.readyState).toBe(WebSocket.CLOSED)
    const { status } = await fetch(served.address, { method: 'POST', headers: { accept: 'text/event-stream' } })
    expect(status).toBe(503)
  })

  it('gives no place to a connection that does not say who it is, and cuts it off', async () => {
    const served = await openGraphql({ maxClients: 1 })
    const mute = [dialMute(served.address), dialMute(served.address), await rawSocket(served.socketAddress)]
    const known = await connectedSocket(served.socketAddress)
    known.send({ type: 'subscribe', id: '1', payload: { query: ALL } })
    await served.emit('e1')
    await eventually(() => gotten(known).ids.length === 1)
    await Promise.all(mute.map(({ closed }) => closed))
  })

  it('lets a thousand refused connections that never close give way to a client', { timeout: 60_000 }, async () => {
    const served = await openGraphql()
    const refused = Array.from({ length: 1_000 }, () => dialMute(served.address, WRONG_INIT))
    await Promise.all(refused.map(({ isRefused }) => isRefused))
    const known = await connectedSocket(served.socketAddress)
    expect(known.socket.readyState).toBe(WebSocket.OPEN)
    // The rest is cut off soon, although no client has answered.
    await Promise.all(refused.map(({ closed }) => closed))
  })

  it('tells an answer that is too large as an error with its place, and goes on', async () => {
    const served = await openGraphql({ maxAnswer: '10kB' })
    const query = 'subscription { events(from: "1.0") { id a: payload b: payload c: payload } }'
    await served.emit('large', { payload: { text: 'x'.repeat(4_000) } })
    await served.emit('small')
    for (const client of [wsClient(served.socketAddress), sseClient(served.address)]) {
      const one = subscribe(client, query)
      await one.sees('small')
      expect(one.errors).toMatchObject([
        { extensions: { code: 'TOO_LARGE', token: expect.stringMatching(/^\d+\.\d+$/) } },
      ])
      expect(one.ids).toEqual(['small'])
    }
  })

  it('takes as many clients as it may', async () => {
    const served = await openGraphql({ maxClients: 2 })
    const [one] = [await connectedSocket(served.socketAddress), subscribe(sseClient(served.address), ALL)]
    await served.emit('e1')
    await eventually(async () => (await clientsOf(served.ac, 'graphql-sse')) === 1)
    expect((await rawSocket(served.socketAddress)).socket.readyState).toBe(WebSocket.CLOSED)
    one.socket.close()
    await eventually(async () => (await rawSocket(served.socketAddress)).socket.readyState === WebSocket.OPEN)
  })
})

describe('a request for an event stream', () => {
  const post = (address: string, body: string | null, headers: Record<string, string> = {}, method = 'POST') =>
    fetch(address, {
      method,
      body,
      headers: {
        authorization: 'Bearer ada',
        accept: 'text/event-stream',
        'content-type': 'application/json',
        ...headers,
      },
    })

  it.each<[string, number, string | null, Record<string, string>, string]>([
    ['of another method', 405, '{}', {}, 'PUT'],
    ['that accepts something else', 406, '{}', { accept: 'application/json' }, 'POST'],
    ['without a token', 401, '{}', { authorization: '' }, 'POST'],
    ['that is too large', 413, 'x'.repeat(200_000), {}, 'POST'],
    ['that is no JSON', 400, '{', {}, 'POST'],
    ['that is no object', 400, '[]', {}, 'POST'],
    ['without a query', 400, '{}', {}, 'POST'],
    ['whose variables are no object', 400, '{"query":"{ version }","variables":[]}', {}, 'POST'],
    ['of another type', 415, 'query', { 'content-type': 'text/plain' }, 'POST'],
  ])('%s is answered with %i', async (_, status, body, headers, method) => {
    const served = await openGraphql()
    const response = await post(served.address, body, headers, method)
    expect(response.status).toBe(status)
    await response.text()
  })

  it('may come from pages that are named', async () => {
    const { address } = await openGraphql({ cors: { origins: ['https://shop.example'], credentials: true } })
    const asked = await post(address, null, { origin: 'https://shop.example' }, 'OPTIONS')
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, 'https://shop.example'])
    expect(asked.headers.get('access-control-allow-methods')).toContain('POST')
    const stranger = await post(address, null, { origin: 'https://evil.example' }, 'OPTIONS')
    expect([stranger.status, stranger.headers.get('access-control-allow-origin')]).toEqual([405, null])
  })
})

it('serves two hundred clients, each of them everything and in order', async () => {
  const served = await openGraphql()
  const second = await serveGraphql(served.another())
  const clients = Array.from({ length: 200 }, (_, n) => {
    const { socketAddress, address } = n % 2 ? served : second
    return subscribe(n % 4 < 2 ? wsClient(socketAddress) : sseClient(address), ALL)
  })
  await served.emit('first')
  await Promise.all(clients.map((one) => one.sees('first')))
  await served.emitMany(50)
  await Promise.all(clients.map((one) => one.sees('event-50')))
  const expected = ['first', ...Array.from({ length: 50 }, (_, n) => `event-${n + 1}`)]
  for (const one of clients) expect(one.ids).toEqual(expected)
})

/** A request whose answer is read only as far as its socket is. */
function slowStream(address: string, query: string) {
  const { hostname, port } = new URL(address)
  const socket = dial(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const chunks: string[] = []
  socket.on('data', (chunk) => chunks.push(chunk.toString()))
  socket.on('error', () => {})
  const body = JSON.stringify({ query })
  socket.write(
    `POST /stream HTTP/1.1\r\nhost: house\r\nauthorization: Bearer ada\r\naccept: text/event-stream\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  // Chunks of the transfer break a message apart.
  return { socket, text: () => chunks.join('').replace(/\r\n[0-9a-f]+\r\n/g, '') }
}
