/**
 * One WebSocket that speaks graphql-transport-ws. How it ends, failures first:
 *
 *   gone          no sign of life for two heartbeats, or more waits to be sent than a client may be behind: cut off
 *   malformed     closed with 44xx, as the protocol says
 *   revoked       its subscriptions say so, then 4403
 *   stopping      its subscriptions say so, then 1001: clients come back, to another instance
 *   unavailable   1013 before anything was subscribed to: clients try again
 */
import { setMaxListeners } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Server } from 'graphql-ws'
import type { RawData, WebSocket } from 'ws'
import { type Clock, summarizeError, type ThrottledLog } from '../runtime/index.ts'
import type { Admitted } from './admit.ts'
import type { Connection } from './graphql-connection.ts'
import { toFetchRequest } from './sse-sinks.ts'

/** What graphql-ws hands on to its callbacks as `extra`. */
export interface SocketExtra {
  readonly connection: SocketConnection
}

export interface SocketParts {
  readonly clock: Clock
  readonly logRepeatedly: ThrottledLog
  /** So much may wait to be sent. */
  readonly maxBytes: number
}

/** For what is still to be said to a client that does not read. */
const GRACE_MS = 3_000

export class SocketConnection {
  readonly request: IncomingMessage
  readonly #socket: WebSocket
  readonly #parts: SocketParts
  readonly #gone = new AbortController()
  #admitted: Admitted | undefined
  /** Messages being handled: that of a subscription for as long as it lives. */
  #active = 0
  #leaving: { readonly code: number; readonly reason: string } | undefined
  #isAlive = true
  /** `asking` from the moment the client says who it is until that is found out. */
  stage: 'mute' | 'asking' | 'admitted' | 'refused' = 'mute'

  constructor(socket: WebSocket, request: IncomingMessage, parts: SocketParts) {
    this.#socket = socket
    this.request = request
    this.#parts = parts
    // Every subscription listens to it.
    setMaxListeners(0, this.gone)
  }

  /** Fires when the connection has ended. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  serve(server: Server<SocketExtra>): void {
    const socket = this.#socket
    const closed = server.opened(
      {
        protocol: socket.protocol,
        // Resolves when it was handed to the network: until then the subscription asks for nothing more.
        send: (data) => new Promise((resolve) => this.#send(data, resolve)),
        close: (code = 1000, reason = '') => this.close(code, reason),
        onMessage: (handle) => socket.on('message', (data) => void this.#take(data, handle)),
      },
      { connection: this },
    )
    socket.on('pong', () => {
      this.#isAlive = true
    })
    // Malformed frames; ws closes the connection itself, with the code that is due.
    socket.on('error', () => {})
    socket.once('close', (code, reason) => {
      this.#gone.abort()
      void closed(code, String(reason))
    })
  }

  admit(admitted: Admitted): void {
    this.#admitted = admitted
  }

  /** For a subscription. Only a connection that was admitted gets so far. */
  get context(): Connection {
    const onRevoked = () => this.leave(4403, 'Forbidden')
    return { ...this.#admitted!, transport: 'graphql-ws', signal: this.gone, onRevoked }
  }

  /** The head of the upgrade, with the bearer token of `connectionParams` where browsers cannot send a header. */
  toRequest(parameters: Readonly<Record<string, unknown>> | undefined): Request {
    const request = toFetchRequest(this.request)
    const given = findAuthorization(parameters)
    // No other header: those that a proxy adds and `authorize` trusts must not come from a client.
    if (given !== undefined && !request.headers.has('authorization') && HEADER.test(given)) {
      request.headers.set('authorization', given)
    }
    return request
  }

  /** Closes it as soon as nothing is being handled any more. */
  leave(code: number, reason: string): void {
    if (this.#leaving !== undefined) return
    this.#leaving = { code, reason }
    this.#leaveWhenIdle()
    this.#cutOffLater()
  }

  /** Closes it now, whatever is going on. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
    this.#cutOffLater()
  }

  terminate(): void {
    this.#socket.terminate()
  }

  /** Called every heartbeat. */
  beat(): void {
    const isGone = !this.#isAlive || this.#socket.bufferedAmount > this.#parts.maxBytes
    this.#isAlive = false
    if (isGone) this.#socket.terminate()
    else this.#socket.ping()
  }

  async #take(data: RawData, handle: (text: string) => Promise<void>): Promise<void> {
    this.#active++
    try {
      await handle(String(data))
    } catch (error) {
      // A message that only servers send is as wrong as one that nobody sends.
      const isStrange = error instanceof Error && error.message.startsWith('Unexpected message')
      if (isStrange) return this.close(4400, 'Invalid message received')
      const fields = { err: summarizeError(error) }
      this.#parts.logRepeatedly('error', 'socket', fields, 'a GraphQL connection failed and was closed')
      this.close(4500, 'Internal server error')
    } finally {
      this.#active--
      this.#leaveWhenIdle()
    }
  }

  #send(data: string, sent: () => void): void {
    const socket = this.#socket
    // Answers to pings, for somebody who sends and does not read.
    if (socket.bufferedAmount > this.#parts.maxBytes) socket.terminate()
    if (socket.readyState === socket.OPEN) socket.send(data, () => sent())
    else sent()
  }

  #leaveWhenIdle(): void {
    if (this.#leaving !== undefined && this.#active === 0) this.#socket.close(this.#leaving.code, this.#leaving.reason)
  }

  #cutOffLater(): void {
    void this.#parts.clock.sleep(GRACE_MS, this.gone).then(
      () => this.#socket.terminate(),
      () => {},
    )
  }
}

const HEADER = /^[\t\x20-\x7e]+$/

/** As clients commonly send it: by itself, or among `headers`. */
function findAuthorization(parameters: Readonly<Record<string, unknown>> | undefined): string | undefined {
  for (const place of [parameters, parameters?.headers]) {
    if (typeof place !== 'object' || place === null) continue
    const [, value] = Object.entries(place).find(([name]) => name.toLowerCase() === 'authorization') ?? []
    if (typeof value === 'string') return value
  }
  return undefined
}
