/** An event as the schema shows it, made once however many clients get it. */
import { ExactNumber, toWire } from '../events/index.ts'
import type { FeedItem } from './feed.ts'
import type { Copies } from './graphql-limits.ts'

type EventItem = Extract<FeedItem, { kind: 'event' }>

export function toGraphqlEvent(item: EventItem): object {
  return viewOf(item).fields
}

/** About what it takes on the wire, if a client asks for everything once. */
export function sizeOf(item: FeedItem): number {
  if (item.kind !== 'event') return 0
  let bytes = 1
  for (const [name, size] of Object.entries(viewOf(item).bytes)) bytes += name.length + size + 4
  return bytes
}

/** The bytes of an answer that has each field so many times. */
export function answerSize(item: EventItem, copies: Copies): number {
  const { bytes } = viewOf(item)
  let size = 0
  for (const [name, times] of copies) size += times * (bytes[name] ?? 0)
  return size
}

interface View {
  readonly fields: object
  /** Of each field as JSON. */
  readonly bytes: Readonly<Record<string, number>>
}

const views = new WeakMap<EventItem, View>()

function viewOf(item: EventItem): View {
  const known = views.get(item)
  if (known !== undefined) return known
  const view = makeView(item)
  views.set(item, view)
  return view
}

function makeView({ event, token }: EventItem): View {
  const wire = toWire(event)
  const fields = {
    id: wire.id,
    type: wire.type,
    kind: event.kind,
    position: wire.position,
    token,
    aggregateType: wire.aggregate_type,
    aggregateId: wire.aggregate_id,
    version: wire.version,
    tenant: wire.tenant,
    occurredAt: wire.occurred_at,
    recordedAt: wire.recorded_at,
    payload: toPlain(wire.payload),
    changes: toPlain(wire.changes),
    previous: toPlain(wire.previous),
  }
  const sizes = Object.entries(fields).map(([name, value]) => [name, Buffer.byteLength(JSON.stringify(value) ?? '')])
  return { fields, bytes: Object.fromEntries(sizes) }
}

/** Answers are written with JSON.stringify, which would fail at or round a number that a double does not hold: it is text. */
function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) return value.map(toPlain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toPlain(member)]))
}
