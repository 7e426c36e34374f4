/**
 * GraphQL over server-sent events, as the package graphql-sse speaks it: one operation per request. Its mode of several
 * operations over one stream is not offered: it keeps streams that nobody may ever come for.
 */
import { summarizeError } from '../runtime/index.ts'
import { admit, tooBusy } from './admit.ts'
import type { Connection } from './graphql-connection.ts'
import type { Operation, ServingParts } from './graphql-operation.ts'
import { maxMessageBytes } from './graphql-options.ts'
import { createRoom, type Messages, type Room, toStream } from './graphql-outflow.ts'
import { loadGraphqlSse } from './graphql-peers.ts'
import { readBody } from './inbound-body.ts'
import { Refusal, toProblem } from './inbound-problem.ts'
import { corsHeaders, preflight } from './sse-cors.ts'

const BODY_MS = 10_000

export function createStreamHandler(parts: ServingParts): (request: Request) => Promise<Response> {
  const { feed, clock, logRepeatedly, settings } = parts
  let speaking: Promise<Speak> | undefined

  async function answer(request: Request): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'POST') {
      throw new Refusal(405, 'Operations are sent with GET or POST.', { headers: { allow: 'GET, POST' } })
    }
    if (!(request.headers.get('accept') ?? '').includes('text/event-stream')) {
      throw new Refusal(406, 'Answers are event streams. Accept `text/event-stream`.')
    }
    speaking ??= createSpeak(parts)
    const speak = await speaking.catch((error) => {
      speaking = undefined
      throw error
    })
    const admitted = await admit(request, settings, feed, clock)
    if (!parts.enter()) throw tooBusy('There are as many clients as this feed takes.')
    const gone = new AbortController()
    gone.signal.addEventListener('abort', parts.leave, { once: true })
    const room = createRoom(gone.signal)
    const connection = { ...admitted, transport: 'graphql-sse', signal: gone.signal, onRevoked() {}, room } as const
    try {
      const text = request.method === 'POST' ? await readText(request, parts) : ''
      const [body, init] = await speak(request, text, connection)
      if (body !== null && typeof body !== 'string') {
        return new Response(toStream(body, { room, gone, clock, request, stallMs: 2 * settings.heartbeatMs }), {
          status: init.status,
          headers: STREAM_HEADERS,
        })
      }
      gone.abort()
      return new Response(body, { status: init.status, headers: { ...init.headers, 'cache-control': 'no-store' } })
    } catch (error) {
      gone.abort()
      throw error
    }
  }

  return async (request) => {
    const cors = corsHeaders(request, settings)
    const asked = preflight(request, cors)
    if (asked !== undefined) return allowPost(asked)
    const response = await answer(request).catch((error) => {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'It could not be answered.', { cause: error })
      if (refusal.cause !== undefined) {
        const fields = { status: refusal.status, err: summarizeError(refusal.cause) }
        logRepeatedly('error', refusal.message, fields, 'a GraphQL request could not be answered')
      }
      return toProblem(refusal, { unread: request.body !== null })
    })
    for (const [name, value] of Object.entries(cors)) response.headers.set(name, value)
    return response
  }
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
}

async function readText(request: Request, { settings, clock }: ServingParts): Promise<string> {
  const bytes = await readBody(request, { maxBytes: maxMessageBytes(settings), timeoutMs: BODY_MS }, clock)
  return bytes.toString()
}

interface StreamConnection extends Connection {
  readonly room: Room
}

type Speak = (
  request: Request,
  body: string,
  connection: StreamConnection,
) => Promise<
  readonly [Messages | string | null, { readonly status: number; readonly headers?: Record<string, string> }]
>

async function createSpeak({ prepare }: ServingParts): Promise<Speak> {
  const { createHandler } = await loadGraphqlSse()
  const handle = createHandler<Request, StreamConnection, never>({
    // Without a token there is one operation per request.
    authenticate: () => null,
    // It was validated when it was prepared.
    validate: () => [],
    onSubscribe({ context }, operation) {
      const prepared = prepare(operation as Operation, context)
      if ('args' in prepared) return prepared.args as never
      return { data: null, errors: prepared.errors }
    },
    onNext: (_, { context }) => context.room.wait(),
  })
  return (request, body, context) => {
    const { method, url } = request
    const get = (name: string) => (name === 'accept' ? 'text/event-stream' : request.headers.get(name))
    return handle({ method, url, headers: { get }, body, raw: request, context })
  }
}

function allowPost({ status, headers }: Response): Response {
  const more = new Headers(headers)
  more.set('access-control-allow-methods', 'GET, POST')
  more.set('access-control-allow-headers', 'authorization, content-type')
  return new Response(null, { status, headers: more })
}
