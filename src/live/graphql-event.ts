/** An event as the schema shows it, made once however many clients get it. */
import { ExactNumber, toWire } from '../events/index.ts'
import type { FeedItem } from './feed.ts'

type EventItem = Extract<FeedItem, { kind: 'event' }>

export function toGraphqlEvent(item: EventItem): object {
  return viewOf(item).fields
}

/** About what it takes on the wire, if a client asks for everything. */
export function sizeOf(item: FeedItem): number {
  return item.kind === 'event' ? viewOf(item).bytes : 0
}

interface View {
  readonly fields: object
  readonly bytes: number
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
  return { fields, bytes: Buffer.byteLength(JSON.stringify(fields)) }
}

/** Answers are written with JSON.stringify, which would fail at or round a number that a double does not hold: it is text. */
function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) return value.map(toPlain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toPlain(member)]))
}
