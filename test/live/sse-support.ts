/** Event streams on real servers, and a reader of them that knows nothing of ours. Everything ends with the test. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { EventDefinitions } from '../../src/events/index.ts'
import type { Aftercommit } from '../../src/instance.ts'
import type { SseHandler, SseOptions } from '../../src/live/index.ts'
import type { AftercommitOptions } from '../../src/options.ts'
import { type OpenSubscriptions, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

export type AnyInstance = Aftercommit<EventDefinitions>
type Options = Partial<SseOptions<string>>

/** The principal is what the header says; nobody without one is let in. */
export const byHeader = (request: Request): string | null => request.headers.get('x-user')

export interface OpenSse extends OpenSubscriptions {
  /** Of the feed; `url` is that of the database. */
  readonly feedUrl: string
  /** Another instance with a server of its own. */
  server(options?: Options): Promise<{ ac: AnyInstance; feedUrl: string }>
}

export async function openSse(
  options: Options = {},
  instanceOptions: Omit<AftercommitOptions, 'database'> & { major?: 18 | 14 } = {},
): Promise<OpenSse> {
  const log = await openSubscriptions(instanceOptions)
  const serveOn = async (ac: AnyInstance, more: Options = {}) => serveSse(feedOf(ac, { ...options, ...more }))
  return {
    ...log,
    feedUrl: await serveOn(log.ac),
    async server(more) {
      const ac = log.another()
      return { ac, feedUrl: await serveOn(ac, more) }
    },
  }
}

export function feedOf(ac: AnyInstance, options: Options = {}): SseHandler {
  return ac.live.sse<string, readonly string[]>({ authorize: byHeader, ...options })
}

function serveSse(feed: SseHandler): Promise<string> {
  return serve((req, res) => void feed.node(req, res))
}

export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/feed`
}

export interface Frame {
  readonly event: string
  readonly id: string | undefined
  readonly data: string
}

export interface Stream {
  readonly response: Response
  readonly frames: readonly Frame[]
  /** Ids of the events that came as CloudEvents, in order. */
  readonly ids: readonly string[]
  /** What a browser would send as `Last-Event-ID`. */
  readonly lastId: string | undefined
  /** The whole text. */
  readonly text: string
  readonly ended: Promise<void>
  sees(id: string): Promise<void>
  saw(event: string): Promise<Frame>
  /** Resolves when the stream has found its place. */
  placed(): Promise<void>
  close(): void
}

export interface Asking {
  readonly user?: string | null
  readonly query?: Record<string, string>
  readonly lastId?: string | undefined
  readonly headers?: Record<string, string>
}

/** A client as simple as the specification allows. */
export async function listen(
  url: string,
  { user = 'ada', query = {}, lastId, headers = {} }: Asking = {},
): Promise<Stream> {
  const over = new AbortController()
  const asked = new URL(url)
  for (const [name, value] of Object.entries(query)) asked.searchParams.append(name, value)
  const response = await fetch(asked, {
    headers: {
      ...(user === null ? {} : { 'x-user': user }),
      ...(lastId ? { 'last-event-id': lastId } : {}),
      ...headers,
    },
    signal: over.signal,
  })
  try {
    onTestFinished(() => over.abort())
  } catch {
    // Opened in a hook, or by a client of its own.
  }
  return readStream(response, () => over.abort())
}

function readStream(response: Response, close: () => void): Stream {
  const frames: Frame[] = []
  const ids: string[] = []
  let text = ''
  let unread = ''
  let lastId: string | undefined

  function take(block: string): void {
    let event = 'message'
    let id: string | undefined
    const data: string[] = []
    for (const line of block.split('\n')) {
      const [, field, value = ''] = /^([^:]*):? ?(.*)$/s.exec(line)!
      if (field === 'event') event = value
      if (field === 'id') id = value
      if (field === 'data') data.push(value)
    }
    lastId = id ?? lastId
    if (data.length === 0) return
    frames.push({ event, id, data: data.join('\n') })
    if (event !== 'message') return
    const { id: eventId } = JSON.parse(data.join('\n')) as { id?: string }
    if (eventId !== undefined) ids.push(eventId)
  }

  const ended = (async () => {
    if (response.status !== 200) return
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      const piece = decoder.decode(chunk as Uint8Array, { stream: true })
      text += piece
      unread += piece
      const blocks = unread.split('\n\n')
      unread = blocks.pop()!
      for (const block of blocks) take(block)
    }
  })().catch(() => {})

  return {
    response,
    frames,
    ids,
    get lastId() {
      return lastId
    },
    get text() {
      return text
    },
    ended,
    async sees(id) {
      await eventually(() => ids.includes(id), { every: 5 })
    },
    saw: (event) => eventually(() => frames.find((frame) => frame.event === event), { every: 5 }),
    async placed() {
      if (response.status !== 200) throw new Error(`answered ${response.status}: ${await response.text()}`)
      await eventually(() => lastId !== undefined, { every: 5 })
    },
    close,
  }
}
