/**
 * Items as bytes of an event stream. What is the same for all clients is written once: the frame of an event, and the
 * bytes of a batch that several clients were handed. Nothing of an event but its JSON, which holds no line break, and its
 * token, which is digits, gets into a frame: no name or payload can begin another field.
 */
import { stringifyJson, toCloudEvent } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Clock, checkAnswer, createThrottledLog, type Logger, summarizeError } from '../runtime/index.ts'
import type { FeedItem } from './feed.ts'
import type { SseSettings } from './sse-options.ts'

export interface Frames {
  /** The bytes of a batch for one client. */
  encode(items: readonly FeedItem[], principal: unknown): Uint8Array
  /** About how long the frame of an item is. */
  sizeOf(item: FeedItem): number
}

export interface FramesParts {
  readonly settings: SseSettings
  readonly logger: Logger
  readonly clock: Clock
}

export function createFrames({ settings, logger, clock }: FramesParts): Frames {
  const { source } = settings
  const project = settings.project ?? ((event: AnyEvent) => toCloudEvent(event, { source }))
  // One that takes no principal is not given any, so that what it gives cannot be meant for one client.
  const isShared = project.length < 2
  const frames = new WeakMap<FeedItem, Uint8Array>()
  const batches = new WeakMap<readonly FeedItem[], Uint8Array>()
  const logRepeatedly = createThrottledLog({ logger, clock })

  function write(item: FeedItem, ...principal: [] | [unknown]): Uint8Array {
    if (item.kind === 'event') return writeEvent(item.event, item.token, principal)
    if (item.kind === 'revoked') return toBytes('event: revoked\ndata: {}\n\n')
    const token = item.kind === 'lagged' ? item.from : item.token
    const data = item.kind === 'lagged' ? { from: token } : { token }
    return toBytes(`event: ${item.kind}\nid: ${token}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  function writeEvent(event: AnyEvent, token: string, principal: [] | [unknown]): Uint8Array {
    try {
      const shown = checkAnswer(Reflect.apply(project, settings, [event, ...principal]), PROJECT)
      return shown === undefined ? NOTHING : toBytes(`id: ${token}\ndata: ${stringifyJson(shown, NO_LIMITS)}\n\n`)
    } catch (error) {
      const fields = { event_id: event.id, event_type: event.type, err: summarizeError(error) }
      logRepeatedly('error', event.type, fields, 'an event could not be shown; clients are told to load anew')
      return write({ kind: 'resync', token })
    }
  }

  function shared(item: FeedItem): Uint8Array {
    let frame = frames.get(item)
    if (frame === undefined) {
      frame = write(item)
      frames.set(item, frame)
    }
    return frame
  }

  function encodeShared(items: readonly FeedItem[]): Uint8Array {
    if (items.length === 1) return shared(items[0]!)
    let batch = batches.get(items)
    if (batch === undefined) {
      batch = Buffer.concat(items.map(shared))
      batches.set(items, batch)
    }
    return batch
  }

  return {
    encode: (items, principal) =>
      isShared ? encodeShared(items) : Buffer.concat(items.map((item) => write(item, principal))),
    sizeOf: isShared ? (item) => shared(item).length : (item) => (item.kind === 'event' ? roughSize(item.event) : 0),
  }
}

/** A new one for each client, so that a fleet does not come back all at once. */
export function openingFrame(): Uint8Array {
  return toBytes(`retry: ${retryMs()}\n\n`)
}

export function placeFrame(token: string | undefined): Uint8Array {
  return toBytes(token === undefined ? ':\n\n' : `:\nid: ${token}\n\n`)
}

export function closingFrame(token: string | undefined): Uint8Array {
  return toBytes(`retry: ${retryMs()}\n${token === undefined ? '' : `id: ${token}\n`}\n`)
}

function retryMs(): number {
  return 500 + Math.floor(Math.random() * 2_000)
}

function roughSize(event: AnyEvent): number {
  const known = sizes.get(event)
  if (known !== undefined) return known
  const size = 500 + stringifyJson(event.payload, NO_LIMITS).length
  sizes.set(event, size)
  return size
}

const sizes = new WeakMap<AnyEvent, number>()
const PROJECT = { what: '`project` of a live feed', so: 'the event was not shown', optional: true }
const NOTHING = new Uint8Array(0)
const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'what is shown of an event' }

function toBytes(text: string): Uint8Array {
  return Buffer.from(text)
}
