/**
 * `ac.live.sse`: the log as an event stream for browsers. It promises that nobody is served who was not authorised, that
 * a client gets every event it may see, in order and once, and that whatever breaks this is said in the stream.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventDefinitions, EventOf } from '../events/index.ts'
import { type Clock, createThrottledLog, type Logger, summarizeError } from '../runtime/index.ts'
import { admit, tooBusy } from './admit.ts'
import type { Feed, FeedReader } from './feed.ts'
import { Refusal, toProblem } from './inbound-problem.ts'
import { SseConnection, type SseSink } from './sse-connection.ts'
import { corsHeaders, preflight } from './sse-cors.ts'
import { createFrames } from './sse-frames.ts'
import { type SseOptions, type SseSettings, toSseSettings } from './sse-options.ts'
import { readAsked } from './sse-request.ts'
import { toFetchRequest, toNodeSink, toWebSink } from './sse-sinks.ts'

export interface SseHandler {
  (request: Request): Promise<Response>
  /** The same for Node's `http`, Express and Fastify, at a third of the cost. */
  node(req: IncomingMessage, res: ServerResponse): Promise<void>
}

export type Sse<D extends EventDefinitions = EventDefinitions> = <
  Principal,
  const P extends readonly string[] = readonly ['*'],
>(
  options: SseOptions<Principal, EventOf<D, P>, P>,
) => SseHandler

export interface SseParts {
  readonly feed: Feed
  readonly clock: Clock
  readonly logger: Logger
  readonly source: string
}

export function createSse(parts: SseParts): { sse: Sse; stop(): Promise<void> } {
  const endpoints = new Set<Endpoint>()
  return {
    sse(options) {
      const endpoint = new Endpoint(parts, toSseSettings(options as unknown as SseOptions, parts.source))
      endpoints.add(endpoint)
      return Object.assign((request: Request) => endpoint.fetch(request), {
        node: (req: IncomingMessage, res: ServerResponse) => endpoint.node(req, res),
      })
    },
    async stop() {
      await Promise.all([...endpoints].map((endpoint) => endpoint.closed()))
    },
  }
}

/** A client that may be served, and what is left to do before it is. */
interface Servable {
  readonly headers: Record<string, string>
  readonly principal: unknown
  open(signal: AbortSignal): FeedReader
}

class Endpoint {
  readonly #parts: SseParts
  readonly #settings: SseSettings
  readonly #frames
  readonly #logRepeatedly
  readonly #connections = new Map<SseConnection, Promise<void>>()
  /** Those on their way in included. */
  #clients = 0
  /** There while somebody is served: nothing else may keep a process alive. */
  #stopBeating: (() => void) | undefined

  constructor(parts: SseParts, settings: SseSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#frames = createFrames({ ...parts, settings })
    this.#logRepeatedly = createThrottledLog(parts)
  }

  async fetch(request: Request): Promise<Response> {
    const admitted = await this.#admit(request)
    if (admitted instanceof Response) return admitted
    const { sink, body } = toWebSink(request.signal)
    void this.#serve(sink, admitted)
    return new Response(body, { headers: admitted.headers })
  }

  async node(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const admitted = await this.#admit(toFetchRequest(req))
    const { status, headers } =
      admitted instanceof Response ? admitted : { status: 200, headers: new Headers(admitted.headers) }
    res.statusCode = status
    for (const [name, value] of headers) res.setHeader(name, value)
    if (admitted instanceof Response) return void res.end(await admitted.text())
    // HTTP/2 has no such header; its streams end by themselves.
    if (req.httpVersionMajor < 2) res.setHeader('connection', 'close')
    res.flushHeaders()
    await this.#serve(toNodeSink(res), admitted)
  }

  /** Resolves when every client has gone. */
  async closed(): Promise<void> {
    await Promise.all(this.#connections.values())
  }

  async #admit(request: Request): Promise<Servable | Response> {
    const cors = corsHeaders(request, this.#settings)
    try {
      return preflight(request, cors) ?? (await this.#check(request, cors))
    } catch (error) {
      const refusal = error instanceof Refusal ? error : this.#failed(error)
      const response = toProblem(refusal, { unread: false })
      for (const [name, value] of Object.entries(cors)) response.headers.set(name, value)
      return response
    }
  }

  async #check(request: Request, cors: Record<string, string>): Promise<Servable> {
    const { feed, clock } = this.#parts
    const settings = this.#settings
    if (request.method !== 'GET') throw new Refusal(405, 'A feed is read with GET.', { headers: { allow: 'GET' } })
    const admitted = await admit(request, settings, feed, clock)
    const asked = readAsked(request)
    if (this.#clients >= settings.maxClients) throw tooBusy('There are as many clients as this feed takes.')
    this.#clients++
    const { on, maxBuffered } = settings
    return {
      headers: { ...STREAM_HEADERS, ...cors },
      principal: admitted.principal,
      open: (signal) =>
        feed.open({
          transport: 'sse',
          ...asked,
          ...admitted,
          ...{ on, maxBuffered, signal },
          sizeOf: this.#frames.sizeOf,
        }),
    }
  }

  async #serve(sink: SseSink, { open, principal }: Servable): Promise<void> {
    const { clock } = this.#parts
    const connection = new SseConnection(sink, open(sink.gone))
    const served = connection
      .serve(this.#frames, principal)
      .catch((error) => {
        this.#logRepeatedly(
          'error',
          'serve',
          { err: summarizeError(error) },
          'a live feed was cut off; its client may resume',
        )
      })
      .then(() => connection.close(clock))
      .finally(() => {
        this.#clients--
        this.#connections.delete(connection)
        this.#keepBeating()
      })
    this.#connections.set(connection, served)
    this.#keepBeating()
    await served
  }

  #keepBeating(): void {
    if (this.#connections.size === 0) {
      this.#stopBeating?.()
      this.#stopBeating = undefined
      return
    }
    this.#stopBeating ??= this.#parts.clock.setTimer(this.#settings.heartbeatMs, () => {
      this.#stopBeating = undefined
      for (const connection of this.#connections.keys()) connection.beat()
      this.#keepBeating()
    })
  }

  #failed(cause: unknown): Refusal {
    this.#logRepeatedly('error', 'admit', { err: summarizeError(cause) }, 'a client of a live feed could not be served')
    return new Refusal(500, 'The feed could not be opened.', { cause })
  }
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
}
