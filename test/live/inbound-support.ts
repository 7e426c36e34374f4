/** An inbound endpoint on a real server, and the ways tests talk to it. Everything ends with the test. */
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect as dial } from 'node:net'
import { onTestFinished } from 'vitest'
import type { EventDefinitions } from '../../src/events/index.ts'
import type { Aftercommit } from '../../src/instance.ts'
import type { InboundHandler, InboundOptions } from '../../src/live/index.ts'
import type { AftercommitOptions } from '../../src/options.ts'
import { type OpenLog, openLog } from '../log/support/open-log.ts'

export const TOKEN = 'a-token-that-nobody-guesses'

export interface OpenInbound<D extends EventDefinitions> extends OpenLog<D> {
  readonly inbound: InboundHandler
  /** Of a server on Node's `http`. */
  readonly address: string
}

export async function openInbound<D extends EventDefinitions = EventDefinitions, Principal = string | null>(
  options: Partial<InboundOptions<Principal>> = {},
  instanceOptions: Omit<AftercommitOptions<D>, 'database'> & { major?: 18 | 14 } = {},
): Promise<OpenInbound<D>> {
  const log = await openLog<D>(instanceOptions)
  const inbound = endpoint(log.ac, options)
  return { ...log, inbound, address: await serve((req, res) => void inbound.node(req, res)) }
}

export function endpoint<D extends EventDefinitions, Principal = string | null>(
  ac: Aftercommit<D>,
  options: Partial<InboundOptions<Principal>> = {},
): InboundHandler {
  return ac.live.inbound({ allow: ['lamp.*'], ...(options.secret === undefined ? { token: TOKEN } : {}), ...options })
}

export function serve(listener: RequestListener): Promise<string> {
  return listen(createServer(listener))
}

export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** One event as a sender would write it. */
export function lamp(id: string, more: object = {}): Record<string, unknown> {
  return { specversion: '1.0', id, source: 'https://house.example', type: 'lamp.lit', data: { watts: 9 }, ...more }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: { events?: { id: string; position: string; duplicate: boolean }[]; errors?: object[]; detail?: string }
}

/** An array is sent as a batch, anything else as one event; text and bytes as they are. */
export async function send(
  address: string,
  content: unknown,
  { headers = {}, method = 'POST' }: { headers?: Record<string, string>; method?: string } = {},
): Promise<Answer> {
  const kind = Array.isArray(content) ? 'cloudevents-batch' : 'cloudevents'
  const raw = typeof content === 'string' || content instanceof Uint8Array
  const response = await fetch(address, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': `application/${kind}+json`, ...headers },
    ...(method === 'GET' ? {} : { body: raw ? (content as string) : JSON.stringify(content) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] }
}

/** Sends pieces of text over a socket as they come and gives everything that is answered until the end of the connection. */
export function converse(address: string, pieces: AsyncIterable<string | Buffer> | Iterable<string | Buffer>) {
  const { hostname, port } = new URL(address)
  const socket = dial(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let answered = ''
  socket.on('data', (chunk) => {
    answered += chunk.toString('latin1')
  })
  // The server may have had enough before everything was sent.
  socket.on('error', () => {})
  const ended = new Promise<string>((resolve) => socket.on('close', () => resolve(answered)))
  void (async () => {
    for await (const piece of pieces) {
      if (socket.destroyed) return
      await new Promise<void>((resolve) => socket.write(piece, () => resolve()))
    }
  })()
  return { ended, socket, answered: () => answered }
}

export function head(lines: Record<string, string | number>): string {
  const given = {
    host: 'house',
    authorization: `Bearer ${TOKEN}`,
    'content-type': 'application/cloudevents+json',
    ...lines,
  }
  const rest = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST /events HTTP/1.1\r\n${rest.join('')}\r\n`
}
