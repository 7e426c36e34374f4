/** Serves a console by itself, for `aftercommit console` and for programs without a server of their own. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { AftercommitError } from '../errors.ts'
import type { Aftercommit } from '../index.ts'
import { createSessions, type NamedToken } from './access.ts'
import { createConsole } from './console.ts'

export interface ServeConsoleOptions {
  /** Default: '127.0.0.1'. Any other address needs a token. */
  readonly host?: string | undefined
  /** Default: 4400. 0 takes a free one. */
  readonly port?: number | undefined
  /** The secret to sign in with, as an admin. Without it, on loopback, everybody on this machine is an operator. */
  readonly token?: string | undefined
  readonly environment?: string | undefined
  readonly readOnly?: boolean | undefined
  /** Further names by which it may be called. Loopback names always may. */
  readonly hosts?: readonly string[] | undefined
}

export interface ServedConsole {
  readonly url: string
  close(): Promise<void>
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]', '::1']
const SHORTEST_TOKEN = 16

export async function serveConsole(ac: Aftercommit, options: ServeConsoleOptions = {}): Promise<ServedConsole> {
  const { host = '127.0.0.1', port = 4400, token, environment, readOnly } = options
  if (token === undefined && !LOOPBACK.includes(host)) {
    throw new AftercommitError(
      'BAD_OPTION',
      `A console at ${host} can be reached from other machines, so it needs a token: set AFTERCOMMIT_CONSOLE_TOKEN. It was not started.`,
    )
  }
  if (token !== undefined && token.length < SHORTEST_TOKEN) {
    throw new AftercommitError(
      'BAD_OPTION',
      `The token of a console needs at least ${SHORTEST_TOKEN} characters, so it was not started.`,
    )
  }
  const tokens: NamedToken[] = token === undefined ? [] : [{ token, user: { who: 'console', role: 'admin' } }]
  const sessions = token === undefined ? undefined : createSessions(tokens, '/')
  const console = createConsole(
    ac,
    {
      authorize: sessions?.access ?? (() => ({ who: 'console', role: 'operator' })),
      hosts: [...LOOPBACK, host, ...(options.hosts ?? [])],
      environment,
      readOnly,
    },
    sessions,
  )
  const server = createServer((request, response) => {
    answer(console.fetch, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve)
  })
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${taken}`,
    async close() {
      console.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Between Node's request and a Fetch handler. The body is read whole: it is small, and refused when it is not. */
async function answer(
  fetch: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const over = new AbortController()
  outgoing.on('close', () => over.abort())
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined && !name.startsWith(':')) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  const method = incoming.method ?? 'GET'
  // As one text: resolved against the host, an address like //127.0.0.1/ would name a host of its own.
  const address = `http://${incoming.headers.host ?? ''}${incoming.url}`
  if (!incoming.url?.startsWith('/') || !URL.canParse(address)) return void outgoing.writeHead(400).end()
  const url = new URL(address)
  const body = method === 'GET' || method === 'HEAD' ? undefined : await readAll(incoming)
  const response = await fetch(new Request(url, { method, headers, signal: over.signal, ...(body && { body }) }))
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null || method === 'HEAD') return void outgoing.end()
  const stream = Readable.fromWeb(response.body as never)
  stream.on('error', () => outgoing.destroy())
  outgoing.on('close', () => stream.destroy())
  stream.pipe(outgoing)
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of incoming) {
    size += (chunk as Buffer).length
    if (size > 2_000_000) throw new Error('The body is too large.')
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString()
}
