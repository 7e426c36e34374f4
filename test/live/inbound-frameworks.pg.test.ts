/** The same endpoint in the servers that people use, and from programs that are not ours. */
import { execFile } from 'node:child_process'
import { createServer, type RequestListener, type Server } from 'node:http'
import { promisify } from 'node:util'
import { createAdaptorServer, getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import type { InboundHandler } from '../../src/live/index.ts'
import { hasProgram } from '../support/programs.ts'
import { sseClient, subscribe } from './graphql-support.ts'
import { converse, endpoint, head, lamp, listen, openInbound, send, TOKEN } from './inbound-support.ts'

const run = promisify(execFile)

const FRAMEWORKS: [string, (inbound: InboundHandler) => Promise<string>][] = [
  ['Hono', (inbound) => listen(createAdaptorServer({ fetch: hono(inbound).fetch }) as Server)],
  ['Express', (inbound) => listen(createServer(express().all('/events', (req, res) => inbound.node(req, res))))],
  ['a Fetch handler by itself', (inbound) => listen(createServer(getRequestListener(inbound) as RequestListener))],
]

function hono(inbound: InboundHandler): Hono {
  return new Hono().all('/events', (context) => inbound(context.req.raw))
}

describe.each(FRAMEWORKS)('in %s', (_, start) => {
  it('an event is taken once, and what is wrong is refused', async () => {
    const { ac, inbound } = await openInbound({ maxBytes: '10kB' })
    const address = `${await start(inbound)}/events`
    expect((await send(address, lamp('1'))).status).toBe(202)
    expect((await send(address, [lamp('1'), lamp('2')])).body.events!.map(({ duplicate }) => duplicate)).toEqual([
      true,
      false,
    ])
    expect((await send(address, lamp('1', { data: 0 }))).status).toBe(409)
    expect((await send(address, lamp('3'), { headers: { authorization: 'Bearer no' } })).status).toBe(401)
    expect((await send(address, '{')).status).toBe(400)
    expect((await send(address, 'x'.repeat(20_000))).status).toBe(413)
    expect((await send(address, undefined, { method: 'GET' })).status).toBe(405)
    expect(await ac.log.read({})).toHaveLength(2)
  })

  it('a body that is too large is refused although it never says so', async () => {
    const { inbound } = await openInbound({ maxBytes: '1kB' })
    const address = await start(inbound)
    async function* flood() {
      yield head({ 'transfer-encoding': 'chunked' })
      for (let n = 0; n < 20_000; n++) yield `400\r\n${' '.repeat(1_024)}\r\n`
    }
    const { ended, answered } = converse(address, flood())
    await ended
    expect(answered()).toMatch(/^HTTP\/1\.1 413/)
  })
})

it('takes the bytes that a parser has kept', async () => {
  const { inbound } = await openInbound()
  const app = express()
    .use(express.raw({ type: '*/*' }))
    .post('/events', inbound.node)
  expect((await send(`${await listen(createServer(app))}/events`, lamp('1'))).status).toBe(202)
})

it('says what to do when a parser has eaten the body', async () => {
  const lines: string[] = []
  const logger = {
    debug() {},
    info() {},
    warn() {},
    error: (fields: object) => void lines.push(JSON.stringify(fields)),
  }
  const { ac } = await openInbound({}, { logger: { ...logger, child: () => logger as never } })
  const inbound = endpoint(ac)
  const app = express()
    .use(express.json({ type: '*/*' }))
    .post('/events', inbound.node)
  const { status } = await send(`${await listen(createServer(app))}/events`, lamp('1'))
  expect(status).toBe(500)
  expect(lines.join()).toContain('before any parser of bodies')
})

describe('from outside of JavaScript', () => {
  it.runIf(hasProgram('curl', 'the inbound endpoint from curl'))(
    'curl sends an event in headers, one as JSON, and a body that is too large',
    async () => {
      const { ac, address } = await openInbound({ maxBytes: '100kB' })
      const curl = async (...options: string[]) => {
        const { stdout } = await run('curl', [
          '-s',
          '-w',
          ' %{http_code}',
          '-H',
          `Authorization: Bearer ${TOKEN}`,
          ...options,
          address,
        ])
        return stdout
      }
      const binary = [
        '-H',
        'ce-specversion: 1.0',
        '-H',
        'ce-id: 1',
        '-H',
        'ce-source: /curl',
        '-H',
        'ce-type: lamp.lit',
      ]
      expect(await curl('-H', 'Content-Type: application/json', ...binary, '-d', '{"watts": 9}')).toMatch(
        /"duplicate":false.* 202$/,
      )
      const json = ['-H', 'Content-Type: application/cloudevents+json', '-d']
      expect(await curl(...json, JSON.stringify(lamp('2')))).toMatch(/ 202$/)
      expect(await curl(...json, JSON.stringify(lamp('2')))).toMatch(/"duplicate":true.* 200$/)
      expect(await curl(...json, `"${'x'.repeat(110_000)}"`)).toMatch(/ 413$/)
      expect(await ac.log.read({})).toHaveLength(2)
    },
  )

  it.runIf(hasProgram('python3', 'the inbound endpoint from Python'))('Python sends a signed batch', async () => {
    const secret = 'secret-of-the-house'
    const { ac, address } = await openInbound({ secret })
    const program = `
import base64, hashlib, hmac, json, sys, time, urllib.request
secret, address = sys.argv[1:]
body = json.dumps([{"specversion": "1.0", "id": str(n), "source": "/python", "type": "lamp.lit",
  "data": {"name": "Lämpchen", "serial": 12345678901234567890}} for n in range(3)]).encode()
stamp = str(int(time.time()))
signature = base64.b64encode(hmac.new(secret.encode(), b"msg_1." + stamp.encode() + b"." + body, hashlib.sha256).digest()).decode()
request = urllib.request.Request(address, body, {"content-type": "application/cloudevents-batch+json",
  "webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": "v1," + signature})
with urllib.request.urlopen(request) as answer: print(answer.status, answer.read().decode())
`
    const { stdout } = await run('python3', ['-c', program, secret, address])
    expect(stdout).toMatch(/^202 /)
    const [first, ...others] = await ac.log.read({})
    expect(others).toHaveLength(2)
    expect(first!.payload).toEqual({ name: 'Lämpchen', serial: 12345678901234567890n })
  })
})

describe('GraphQL over server-sent events', () => {
  it.each<[string, (handle: (request: Request) => Promise<Response>, node: RequestListener) => RequestListener]>([
    [
      'Hono',
      (handle) => getRequestListener(new Hono().all('/*', ({ req }) => handle(req.raw)).fetch) as RequestListener,
    ],
    ['Express', (_, node) => express().use(node)],
  ])('is served by %s', async (_, toListener) => {
    const { ac } = await openInbound()
    const graphql = await ac.live.graphql({ authorize: () => 'anybody' })
    const address = await listen(createServer(toListener(graphql.handler, graphql.node)))
    await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'e1', payload: {} }))
    const one = subscribe(sseClient(address), 'subscription { events(from: "1.0") { id } }')
    await one.sees('e1')
    one.stop()
  })
})
