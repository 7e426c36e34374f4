/**
 * What stands at the other end of a call in tests: an HTTP server that keeps every request, and a bare TCP server for
 * those that do not speak HTTP properly. Both listen on loopback and end with the test.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server as NetServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface ReceivedCall {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface HttpReceiver {
  readonly url: string
  readonly port: number
  readonly calls: ReceivedCall[]
  /** Connections made so far, whether or not a request came over them. */
  readonly connections: number
  /** Connections that are open now. */
  readonly open: number
}

export type Reply = (response: ServerResponse, call: ReceivedCall, number: number) => void

export interface ReceiverOptions {
  readonly host?: string
  readonly tls?: { readonly key: string; readonly cert: string }
}

/** Answers 200 `ok` unless told otherwise. `number` counts calls from 1. */
export async function httpReceiver(
  reply: Reply = (response) => response.end('ok'),
  { host = '127.0.0.1', tls }: ReceiverOptions = {},
): Promise<HttpReceiver> {
  const calls: ReceivedCall[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers } = request
    const call = { method, path, headers, body: Buffer.concat(chunks).toString() }
    calls.push(call)
    reply(response, call, calls.length)
  }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch(() => response.destroy())
  }
  const server: Server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
  const counts = await listen(server, host)
  const scheme = tls === undefined ? 'http' : 'https'
  return {
    url: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${counts.port}`,
    port: counts.port,
    calls,
    get connections() {
      return counts.made
    },
    get open() {
      return counts.sockets.size
    },
  }
}

export interface TcpReceiver {
  readonly url: string
  readonly port: number
  readonly connections: number
  readonly open: number
}

/** `onRequest` is called with the first bytes of each connection. */
export async function tcpReceiver(onRequest: (socket: Socket, text: string) => void): Promise<TcpReceiver> {
  const server = createTcpServer((socket) => {
    socket.once('data', (data) => onRequest(socket, data.toString()))
  })
  const counts = await listen(server, '127.0.0.1')
  return {
    url: `http://127.0.0.1:${counts.port}`,
    port: counts.port,
    get connections() {
      return counts.made
    },
    get open() {
      return counts.sockets.size
    },
  }
}

/** A port of loopback that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = createTcpServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}

async function listen(server: NetServer, host: string) {
  const counts = { made: 0, sockets: new Set<Socket>(), port: 0 }
  server.on('connection', (socket: Socket) => {
    counts.made++
    counts.sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => counts.sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
  counts.port = (server.address() as AddressInfo).port
  onTestFinished(() => {
    for (const socket of counts.sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return counts
}
