/**
 * Follows a live feed from a browser, or from anything that has `fetch`. What can happen, failures first:
 *
 *   refused         401 and 403 without a function for headers, other 4xx, or revoked: closed for good
 *   lost            the stream ended, nothing was heard for too long, the page slept or changed networks, a callback
 *                   threw: it waits, longer each time, and resumes after the last event that was dealt with
 *   lagged          as lost; the server has said so
 *   resync          the place means nothing any more: `onResync`, and on from where the server says
 *
 *   connecting ──the stream is open──▶ open ──lost──▶ waiting ──▶ connecting …            close() ──▶ closed
 */
import { createFrameReader, type StreamFrame } from './event-stream.ts'
import { createHandOver } from './hand-over.ts'
import {
  type Catalogue,
  type Connection,
  type ConnectionState,
  type ConnectOptions,
  type EventIn,
  FeedRefusedError,
} from './options.ts'
import { createProgress } from './progress.ts'
import { onWake } from './wake.ts'

const RETRY_MS = { first: 500, most: 30_000 }
/** A server that takes everybody and keeps nobody is no better than one that is away. */
const STEADY_MS = 10_000

export function connect<C extends Catalogue = Catalogue>(options: ConnectOptions<C>): Connection<C> {
  const { onEvent, onResync, onLagged, onState, silenceMs = 45_000 } = options
  const address = toAddress(options)
  const progress = createProgress(options.from, options.storage, options.storageKey ?? `aftercommit:${address}`)
  const events = createHandOver<EventIn<C>>(() => close())
  const over = new AbortController()
  let state: ConnectionState = 'connecting'
  let failures = 0
  let retryMs: number | undefined
  let heardAt = 0
  /** Ends the attempt under way, or the pause between two. */
  let interrupt: (reason: Error) => void = () => {}

  const stopListening = onWake((certain) => {
    if (state === 'waiting' || certain || Date.now() - heardAt > silenceMs / 3)
      interrupt(new Error('The page woke up.'))
  })

  async function run(): Promise<Error | undefined> {
    for (;;) {
      tell('connecting')
      const lost = await attempt()
      progress.save()
      if (over.signal.aborted) return undefined
      if (lost instanceof FeedRefusedError) return lost
      tell('waiting', lost)
      // Whoever was told may have closed it.
      if (!over.signal.aborted) await pause()
      if (over.signal.aborted) return undefined
    }
  }

  /** Gives why it ended. */
  async function attempt(): Promise<Error> {
    const ending = new AbortController()
    interrupt = (reason) => ending.abort(reason)
    const silence = setInterval(
      () => {
        if (Date.now() - heardAt > silenceMs) interrupt(new Error(`Nothing was heard for ${silenceMs} ms.`))
      },
      Math.min(1_000, silenceMs),
    )
    heardAt = Date.now()
    try {
      await follow(ending.signal)
      return new Error('The stream ended.')
    } catch (error) {
      const reason = ending.signal.aborted ? ending.signal.reason : error
      return reason instanceof Error ? reason : new Error(String(reason))
    } finally {
      clearInterval(silence)
      ending.abort()
    }
  }

  async function follow(signal: AbortSignal): Promise<void> {
    const response = await request(signal)
    const reader = response.body!.getReader()
    const toText = new TextDecoder()
    const toFrames = createFrameReader()
    tell('open')
    const openedAt = Date.now()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      // The time that callbacks take is not silence.
      heardAt = Number.POSITIVE_INFINITY
      for (const frame of toFrames(toText.decode(value, { stream: true }))) {
        await take(frame, signal)
        signal.throwIfAborted()
      }
      progress.save()
      heardAt = Date.now()
      if (heardAt - openedAt > STEADY_MS) failures = 0
    }
  }

  async function request(signal: AbortSignal): Promise<Response> {
    const { headers = {}, credentials, fetch: fetchWith = fetch } = options
    const url = new URL(address)
    if (progress.token !== undefined) url.searchParams.set('from', progress.token)
    const own = typeof headers === 'function' ? await orAborted(headers(), signal) : headers
    const response = await fetchWith(url, {
      headers: { accept: 'text/event-stream', ...own },
      ...(credentials === undefined ? {} : { credentials }),
      signal,
    })
    if (response.ok && response.headers.get('content-type')?.startsWith('text/event-stream')) return response
    await response.body?.cancel().catch(() => {})
    throw toError(response, typeof headers === 'function')
  }

  async function take(frame: StreamFrame, signal: AbortSignal): Promise<void> {
    const { event, data, id } = frame
    retryMs = frame.retryMs ?? retryMs
    if (event === 'revoked') throw revoked(typeof options.headers === 'function')
    if (event === 'resync' && id !== undefined) {
      await onResync(id)
      progress.reset(id)
    } else if (event === 'lagged' && id !== undefined) {
      onLagged?.(id)
    } else if (event === 'message') {
      if (data !== undefined && progress.isNew(id)) await deliver(JSON.parse(data), id, signal)
      if (id !== undefined) progress.advance(id)
    }
  }

  async function deliver(event: EventIn<C>, id: string | undefined, signal: AbortSignal): Promise<void> {
    await (onEvent === undefined ? events.give(event) : onEvent(event, id))
    // A loop that was left has not dealt with it.
    if (over.signal.aborted) signal.throwIfAborted()
    failures = 0
  }

  function pause(): Promise<void> {
    // No hint makes it ask without a pause, and every one leads to the longest.
    const shortest = Math.max(1, retryMs ?? RETRY_MS.first)
    const longest = Math.min(RETRY_MS.most, shortest * 2 ** Math.min(failures, 15))
    failures++
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longest / 2 + Math.random() * (longest / 2))
      interrupt = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  function tell(now: ConnectionState, error?: Error): void {
    if (state === 'closed') return
    state = now
    try {
      onState?.(now, error)
    } catch (thrown) {
      // Whoever only watches must not end it; the page learns of the mistake as of any other.
      queueMicrotask(() => {
        throw thrown
      })
    }
  }

  function close(): void {
    over.abort()
    events.end()
    interrupt(new Error('The connection was closed.'))
  }

  const closed = run().then((error) => {
    stopListening()
    tell('closed', error)
    events.end(error)
    return error
  })

  return {
    get state() {
      return state
    },
    get token() {
      return progress.token
    },
    closed,
    close,
    [Symbol.asyncIterator]() {
      if (onEvent === undefined) return events.iterator()
      throw new TypeError('Events of this connection go to onEvent; leave that out to read them with for await.')
    },
  }
}

function toAddress({ url, types, aggregate }: Pick<ConnectOptions, 'url' | 'types' | 'aggregate'>): string {
  const { location } = globalThis as unknown as { location?: { href: string } }
  const address = new URL(url, location?.href)
  if (types !== undefined) address.searchParams.set('types', types.join(','))
  if (aggregate !== undefined) address.searchParams.set('aggregate_type', aggregate.type)
  if (aggregate?.id !== undefined) address.searchParams.set('aggregate_id', aggregate.id)
  return address.href
}

/** Headers that never come must not keep it from noticing silence, nor from being closed. */
function orAborted<T>(value: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    Promise.resolve(value).then(resolve, reject)
  })
}

function toError({ status }: Response, canRenew: boolean): Error {
  const message = `The feed answered ${status}.`
  const passing = status < 400 || status >= 500 || status === 408 || status === 429
  const renewable = canRenew && (status === 401 || status === 403)
  return passing || renewable ? new Error(message) : new FeedRefusedError(status, message)
}

function revoked(canRenew: boolean): Error {
  const message = 'The session or token of this client was revoked.'
  return canRenew ? new Error(message) : new FeedRefusedError(0, message)
}
