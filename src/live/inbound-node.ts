/**
 * A Fetch handler for Node's `http`, and so for Express and Fastify. A body is handed on as it arrives, and one that is
 * refused is left where it is: tearing it down would take the connection with it, before the answer is out. An answer
 * is written as fast as it is taken.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyUsed } from './inbound-body.ts'
import { toFetchRequest, toNodeSink } from './sse-sinks.ts'

export type NodeHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>

export function toNodeHandler(handle: (request: Request) => Promise<Response>): NodeHandler {
  return async (req, res) => {
    const response = await handle(toRequest(req))
    res.statusCode = response.status
    for (const [name, value] of response.headers) {
      // HTTP/2 has no such header; its streams end by themselves.
      if (name !== 'connection' || req.httpVersionMajor < 2) res.setHeader(name, value)
    }
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    if (isStream && response.body !== null) await stream(response.body, res)
    else res.end(await response.text())
  }
}

async function stream(body: ReadableStream<Uint8Array>, res: ServerResponse): Promise<void> {
  const reader = body.getReader()
  const sink = toNodeSink(res)
  const leave = () => void reader.cancel().catch(() => {})
  if (sink.gone.aborted) return leave()
  sink.gone.addEventListener('abort', leave, { once: true })
  res.flushHeaders()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (!sink.write(next.value)) await sink.drained(sink.gone)
    }
    sink.end()
  } catch {
    // Half an answer must not pass for a whole one.
    sink.destroy()
  }
}

function toRequest(req: IncomingMessage): Request {
  const request = toFetchRequest(req)
  return req.method === 'POST' ? new Request(request, { body: toStream(req), duplex: 'half' } as RequestInit) : request
}

function toStream(req: IncomingMessage): ReadableStream<Uint8Array> {
  const kept = req.readableEnded ? keptBody(req) : undefined
  if (kept !== undefined) return ReadableStream.from([kept])
  let controller: ReadableStreamDefaultController<Uint8Array>
  const onData = (chunk: Buffer) => {
    req.pause()
    controller.enqueue(chunk)
  }
  const onEnd = () => {
    forget()
    controller.close()
  }
  const onBreak = () => {
    forget()
    controller.error(req.readableEnded ? new BodyUsed() : new Error('the connection was lost'))
  }
  function forget(): void {
    req.off('data', onData).off('end', onEnd).off('close', onBreak)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
        if (req.readableEnded || req.destroyed) onBreak()
        else req.on('data', onData).on('end', onEnd).on('close', onBreak).on('error', onBreak).pause()
      },
      pull: () => void req.resume(),
      cancel() {
        forget()
        req.pause()
      },
    },
    { highWaterMark: 0 },
  )
}

/** What a parser left of a body it has read, if it kept the bytes. */
function keptBody(req: IncomingMessage): Uint8Array | undefined {
  const { rawBody, body } = req as { rawBody?: unknown; body?: unknown }
  const bytes = [rawBody, body].find((one) => typeof one === 'string' || one instanceof Uint8Array)
  return typeof bytes === 'string' ? Buffer.from(bytes) : (bytes as Uint8Array | undefined)
}
