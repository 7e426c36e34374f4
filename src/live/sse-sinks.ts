/** The two ways to a client. Node's own response costs a third of what a web stream over it does. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SseSink } from './sse-connection.ts'

/** The head is sent at once: a client knows that it is connected before there is an event. */
export function toNodeSink(res: ServerResponse): SseSink {
  const gone = new AbortController()
  res.on('close', () => gone.abort())
  res.on('error', () => gone.abort())
  if (res.destroyed || res.writableEnded) gone.abort()
  return {
    gone: gone.signal,
    get isFull() {
      return res.writableNeedDrain
    },
    write: (bytes) => res.write(bytes),
    drained: (signal) =>
      untilAny([signal, gone.signal], (done) => {
        res.on('drain', done)
        return () => res.off('drain', done)
      }),
    end: () => void res.end(),
    destroy: () => void res.destroy(),
  }
}

/** So much is taken before the reader of a web stream asks for it. */
const HIGH_WATER = 65_536

export function toWebSink(signal: AbortSignal): { sink: SseSink; body: ReadableStream<Uint8Array> } {
  const gone = new AbortController()
  const waiting = new Set<() => void>()
  let controller!: ReadableStreamDefaultController<Uint8Array>
  const leave = () => gone.abort()
  const end = () => {
    signal.removeEventListener('abort', end)
    if (!gone.signal.aborted) controller.close()
    gone.abort()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start: (given) => {
        controller = given
      },
      pull: () => {
        for (const done of waiting) done()
      },
      cancel: leave,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER }),
  )
  const sink: SseSink = {
    gone: gone.signal,
    get isFull() {
      return (controller.desiredSize ?? 0) <= 0
    },
    write(bytes) {
      controller.enqueue(bytes)
      return !sink.isFull
    },
    drained: (ended) =>
      untilAny([ended, gone.signal], (done) => {
        waiting.add(done)
        return () => waiting.delete(done)
      }),
    end,
    destroy: leave,
  }
  signal.addEventListener('abort', end, { once: true })
  // It may have gone while it was looked at, which is not told again.
  if (signal.aborted) end()
  return { sink, body }
}

/** A Fetch request with the line and the head of Node's; whatever they say, it is a place on this server. */
export function toFetchRequest({ url = '/', method = 'GET', rawHeaders }: IncomingMessage): Request {
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) appendHeader(headers, rawHeaders[at]!, rawHeaders[at + 1]!)
  const host = `http://${headers.get('host')}`
  const { origin } = new URL(URL.canParse(host) ? host : 'http://localhost')
  const path = url.startsWith('/') ? url : `/${url}`
  return new Request(origin + path, { headers, method: FORBIDDEN.has(method) ? 'POST' : method })
}

/** Pseudo-headers of HTTP/2, and whatever else Node takes and the Fetch standard does not, are left out. */
function appendHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, value)
  } catch {
    // Nobody can rely on a header that cannot be asked for.
  }
}

/** A Fetch request cannot have these methods; here one is as wrong as another. */
const FORBIDDEN = new Set(['CONNECT', 'TRACE', 'TRACK'])

function untilAny(signals: AbortSignal[], listen: (done: () => void) => () => unknown): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const signal of signals) signal.removeEventListener('abort', done)
      stop()
      resolve()
    }
    const stop = listen(done)
    for (const signal of signals) signal.addEventListener('abort', done, { once: true })
    if (signals.some(({ aborted }) => aborted)) done()
  })
}
