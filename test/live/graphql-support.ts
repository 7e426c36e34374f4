/** GraphQL on a real server, and the clients that people use. Everything ends with the test. */
import { createServer, type Server } from 'node:http'
import { createClient as createSseClient } from 'graphql-sse'
import { createClient as createWsClient } from 'graphql-ws'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Aftercommit } from '../../src/instance.ts'
import type { GraphqlOptions, LiveGraphql } from '../../src/live/index.ts'
import type { AnyEvent } from '../../src/log/index.ts'
import type { AftercommitOptions } from '../../src/options.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { listen } from './inbound-support.ts'

/** Before the first event of a new log. */
export const START = '1.0'

export type Options = Partial<GraphqlOptions<string, AnyEvent, readonly string[]>>

/** Whoever gives a bearer token is called by it. */
function bearer(request: Request): string | null {
  return /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? null
}

export interface Served {
  readonly graphql: LiveGraphql
  readonly server: Server
  /** Server-sent events at `/stream`. */
  readonly address: string
  /** WebSockets. */
  readonly socketAddress: string
}

export async function serveGraphql(ac: Aftercommit, options: Options = {}): Promise<Served> {
  const graphql = await ac.live.graphql<string, readonly string[]>({ authorize: bearer, ...options })
  const server = createServer((req, res) => void graphql.node(req, res))
  const address = await listen(server)
  await graphql.attach(server)
  return { graphql, server, address: `${address}/stream`, socketAddress: `${address.replace('http', 'ws')}/graphql` }
}

export async function openGraphql(options: Options = {}, instanceOptions: Omit<AftercommitOptions, 'database'> = {}) {
  const log = await openSubscriptions(instanceOptions)
  return { ...log, ...(await serveGraphql(log.ac, options)) }
}

export interface Subscriber {
  readonly events: readonly Record<string, unknown>[]
  readonly errors: readonly { message: string; extensions?: { code?: string; token?: string } }[]
  /** The ids of what came. */
  readonly ids: readonly unknown[]
  /** Resolves when the subscription has ended; gives what the client threw. */
  readonly ended: Promise<unknown>
  sees(id: string): Promise<void>
  stop(): void
}

interface Client {
  subscribe(operation: Operation, sink: Sink): () => void
}

interface Operation {
  query: string
  variables?: Record<string, unknown>
}

interface Sink {
  next(result: { data?: unknown; errors?: unknown }): void
  error(error: unknown): void
  complete(): void
}

export function subscribe(client: Client, query: string, variables: Record<string, unknown> = {}): Subscriber {
  const events: Record<string, unknown>[] = []
  const errors: Subscriber['errors'][number][] = []
  let stop = () => {}
  const ended = new Promise<unknown>((resolve) => {
    stop = client.subscribe(
      { query, variables },
      {
        next({ data, errors: told }) {
          if (data) events.push(...Object.values(data as Record<string, Record<string, unknown>>))
          errors.push(...((told ?? []) as typeof errors))
        },
        error: resolve,
        complete: () => resolve(undefined),
      },
    )
  })
  onTestFinished(() => stop())
  return {
    events,
    errors,
    get ids() {
      return events.map(({ id }) => id)
    },
    ended,
    async sees(id) {
      await eventually(() => events.some((event) => event.id === id), { every: 5 })
    },
    stop: () => stop(),
  }
}

export interface ClientWords {
  readonly user?: string
  readonly retryAttempts?: number
}

export function wsClient(url: string, { user = 'ada', retryAttempts = 0 }: ClientWords = {}): Client {
  const connectionParams = { authorization: `Bearer ${user}` }
  const client = createWsClient({
    url,
    webSocketImpl: WebSocket,
    connectionParams,
    retryAttempts,
    retryWait: async () => {},
  })
  onTestFinished(() => void client.dispose())
  return client as unknown as Client
}

export function sseClient(url: string, { user = 'ada', retryAttempts = 0 }: ClientWords = {}): Client {
  const client = createSseClient({ url, headers: { authorization: `Bearer ${user}` }, retryAttempts })
  onTestFinished(() => client.dispose())
  return client as unknown as Client
}

/** Everything from the start of the log. */
export const ALL = `subscription { events(from: "${START}") { id type token } }`

/** How many clients an instance counts. */
export async function clientsOf(ac: Aftercommit, transport: string): Promise<number> {
  const found = new RegExp(`aftercommit_live_clients\\{transport="${transport}"\\} (\\d+)`).exec(await ac.metrics())
  return Number(found?.[1] ?? 0)
}

/** A WebSocket without a client around it. */
export interface RawSocket {
  readonly socket: WebSocket
  readonly messages: readonly { type: string; id?: string; payload?: unknown }[]
  readonly closed: Promise<{ code: number; reason: string }>
  send(message: unknown): void
}

export async function rawSocket(
  url: string,
  { protocol = 'graphql-transport-ws', headers = {} } = {},
): Promise<RawSocket> {
  const socket = new WebSocket(url, protocol, { headers })
  const messages: { type: string }[] = []
  socket.on('error', () => {})
  socket.on('message', (data) => messages.push(JSON.parse(String(data))))
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  onTestFinished(() => socket.terminate())
  await new Promise((resolve) => socket.once('open', resolve).once('close', resolve))
  return {
    socket,
    messages,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
  }
}

/** One that was let in. */
export async function connectedSocket(url: string, user = 'ada'): Promise<RawSocket> {
  const raw = await rawSocket(url)
  raw.send({ type: 'connection_init', payload: { authorization: `Bearer ${user}` } })
  await eventually(() => raw.messages.some(({ type }) => type === 'connection_ack'))
  return raw
}
