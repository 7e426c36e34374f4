/**
 * GraphQL over WebSockets on a server of Node's. Only upgrades of one path are taken; others are left to whoever else
 * listens. Pages of other origins are refused unless `cors.origins` names them: a browser sends the cookies of this host
 * with every WebSocket, whoever opens it, and no preflight asks.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { summarizeError } from '../runtime/index.ts'
import { admit, tooBusy } from './admit.ts'
import type { Prepare, ServingParts } from './graphql-operation.ts'
import {
  type AttachOptions,
  type GraphqlAttachment,
  type GraphqlSettings,
  maxMessageBytes,
  type UpgradeServer,
} from './graphql-options.ts'
import { type GraphqlModule, loadGraphqlWs, loadWs } from './graphql-peers.ts'
import { SocketConnection, type SocketExtra } from './graphql-socket.ts'
import { Refusal } from './inbound-problem.ts'

export interface AttachParts extends ServingParts {
  readonly graphql: GraphqlModule
}

/** How soon it is noticed that the server was closed: it waits for its connections and tells nobody. */
const LOOK_MS = 1_000
const MAX_BUFFERED_BYTES = 4_000_000
/** A client says who it is at once; a connection that does not is cut off, without waiting for it to close. */
const INIT_MS = 5_000
/** Connections that nobody is known on yet. */
const MOST_WAITING = 1_000

export async function attachTo(
  server: UpgradeServer,
  { path = '/graphql' }: AttachOptions,
  parts: AttachParts,
): Promise<GraphqlAttachment & { stop(): Promise<void> }> {
  const { feed, clock, settings, logRepeatedly } = parts
  const [{ WebSocketServer }, { handleProtocols, makeServer }] = await Promise.all([loadWs(), loadGraphqlWs()])
  const protocol = makeServer<Record<string, unknown>, SocketExtra>(toProtocolOptions(parts, onAdmitted))
  const maxBytes = settings.maxBuffered?.bytes ?? MAX_BUFFERED_BYTES
  const connections = new Set<SocketConnection>()
  const waiting = new Set<SocketConnection>()
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // A packed message may unfold to anything, and every connection would need memory for it.
    perMessageDeflate: false,
    maxPayload: maxMessageBytes(settings),
    handleProtocols,
  })
  let beatAt = 0
  let isLooking = false

  function onUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {})
    if ((req.url ?? '').split('?')[0] !== path) {
      if (server.listenerCount('upgrade') === 1) refuse(socket, '404 Not Found')
    } else if (!isWelcome(req, settings)) {
      refuse(socket, '403 Forbidden')
    } else if (feed.stopping.aborted || parts.isFull() || !makeRoom()) {
      refuse(socket, '503 Service Unavailable')
    } else {
      sockets.handleUpgrade(req, socket, head, (webSocket) => take(webSocket, req))
    }
  }

  function take(webSocket: WebSocket, req: IncomingMessage): void {
    const connection = new SocketConnection(webSocket, req, { clock, logRepeatedly, maxBytes })
    connections.add(connection)
    waiting.add(connection)
    connection.gone.addEventListener('abort', () => waiting.delete(connection), { once: true })
    clock.setTimer(INIT_MS, () => connection.stage === 'mute' && connection.terminate())
    connection.gone.addEventListener('abort', () => connections.delete(connection), { once: true })
    connection.serve(protocol)
    lookAfter()
  }

  /**
   * A connection takes the place of a client once it is admitted. Mute connections, and refused ones that do not answer
   * the close frame, give way to new ones.
   */
  function makeRoom(): boolean {
    if (waiting.size < MOST_WAITING) return true
    const idle = [...waiting].find(({ stage }) => stage !== 'asking')
    idle?.terminate()
    return idle !== undefined && waiting.delete(idle)
  }

  function onAdmitted(connection: SocketConnection): void {
    if (connection.gone.aborted) return
    waiting.delete(connection)
    if (!parts.enter()) throw tooBusy('There are as many clients as this feed takes.')
    connection.gone.addEventListener('abort', parts.leave, { once: true })
  }

  /** While there are connections: shows that they live, and ends them when their server was closed. */
  function lookAfter(): void {
    if (isLooking || connections.size === 0) return
    isLooking = true
    clock.setTimer(Math.min(LOOK_MS, settings.heartbeatMs), () => {
      isLooking = false
      if (!server.listening) closeAll()
      const now = clock.monotonic()
      if (now - beatAt >= settings.heartbeatMs) {
        beatAt = now
        for (const connection of connections) connection.beat()
      }
      lookAfter()
    })
  }

  const closeAll = () => {
    for (const connection of connections) connection.close(1001, 'Going away')
  }
  const allGone = () => Promise.all([...connections].map(({ gone }) => aborted(gone)))

  server.on('upgrade', onUpgrade)
  return {
    async detach() {
      server.off('upgrade', onUpgrade)
      closeAll()
      await allGone()
    },
    /** The feed has stopped, so every subscription is saying its last word. */
    async stop() {
      server.off('upgrade', onUpgrade)
      for (const connection of connections) connection.leave(1001, 'Going away')
      await allGone()
    },
  }
}

function toProtocolOptions(
  { graphql, feed, clock, settings, prepare, logRepeatedly }: AttachParts,
  onAdmitted: (connection: SocketConnection) => void,
) {
  return {
    async onConnect({ extra: { connection }, connectionParams }: ProtocolContext): Promise<boolean> {
      try {
        connection.stage = 'asking'
        const admitted = await admit(connection.toRequest(connectionParams), settings, feed, clock)
        onAdmitted(connection)
        connection.admit(admitted)
        connection.stage = 'admitted'
        return true
      } catch (error) {
        connection.stage = 'refused'
        const refusal = error instanceof Refusal ? error : new Refusal(500, '', { cause: error })
        if (refusal.cause !== undefined) {
          const fields = { err: summarizeError(refusal.cause) }
          logRepeatedly('error', 'connect', fields, 'a GraphQL client could not be connected')
        }
        if (refusal.status >= 500) connection.close(1013, 'Try again later')
        return false
      }
    },
    onSubscribe({ extra, subscriptions }: ProtocolContext, _id: string, payload: Parameters<Prepare>[0]) {
      if (Object.keys(subscriptions).length > settings.maxSubscriptions) {
        return [new graphql.GraphQLError(`A connection has at most ${settings.maxSubscriptions} subscriptions.`)]
      }
      const prepared = prepare(payload, extra.connection.context)
      return 'args' in prepared ? prepared.args : prepared.errors
    },
  }
}

interface ProtocolContext {
  readonly extra: SocketExtra
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined
  readonly subscriptions: Readonly<Record<string, unknown>>
}

/** Whoever sends no origin is no browser. */
function isWelcome({ headers: { origin, host } }: IncomingMessage, { cors }: GraphqlSettings): boolean {
  if (origin === undefined) return true
  if (URL.canParse(origin) && new URL(origin).host === host) return true
  return cors?.origins.some((known) => known === '*' || known === origin) ?? false
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
