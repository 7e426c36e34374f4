/**
 * The message that says: this event is in the log. It names the event and where it stands, and holds nothing of what the
 * event says: whoever may listen to Redis need not be one who may read the log. What comes in is taken apart field by
 * field; anybody can publish on a channel. Pure.
 */
import type { EventKind } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'

/** Word of one event. */
export interface RedisEvent {
  readonly id: string
  readonly type: string
  readonly kind: EventKind
  readonly position: bigint
  /** Positions of another epoch are of another history. */
  readonly epoch: number
  /** Place in its stream; null for plain events. */
  readonly version: number | null
  readonly aggregate: { readonly type: string; readonly id: string } | null
  readonly tenant: string | null
}

export interface Message extends RedisEvent {
  /** The process that published it. */
  readonly origin: string
  /** The position of the message before it, in the same epoch; null when nobody knows. */
  readonly previous: bigint | null
}

/** Without its last field and brace: `previous` is known to Redis alone, and added there. */
export function writeOpenMessage(event: AnyEvent, epoch: number, origin: string): string {
  const { id, type, kind, version, tenant, aggregateType, aggregateId } = event
  const aggregate = aggregateType === null ? null : { type: aggregateType, id: aggregateId }
  const position = String(event.position)
  return JSON.stringify({ v: 1, id, type, kind, position, epoch, version, aggregate, tenant, origin }).slice(0, -1)
}

/** Undefined for whatever is not one of ours. */
export function readMessage(text: string): Message | undefined {
  if (text.length > LONGEST) return undefined
  const fields = parse(text)
  if (fields === undefined || fields.v !== 1) return undefined
  const { id, type, kind, epoch, version, tenant, origin } = fields
  const position = toPosition(fields.position)
  // An invalid `previous` counts as missing, so the listener reports a gap. It comes from the mark, which any client can write.
  const previous = toPosition(fields.previous) ?? null
  const aggregate = toAggregate(fields.aggregate)
  if (position === undefined || aggregate === undefined) return undefined
  if (!isText(id) || !isText(type) || !isText(origin) || !isKind(kind)) return undefined
  if (!isCount(epoch) || !(version === null || isCount(version)) || !(tenant === null || isText(tenant)))
    return undefined
  return { id, type, kind, position, epoch, version, aggregate, tenant, origin, previous }
}

/** A message of ours has a few hundred characters; ids of aggregates may be long. */
const LONGEST = 16_384
const LAST_POSITION = 2n ** 63n - 1n

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function toPosition(value: unknown): bigint | undefined {
  if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) return undefined
  const position = BigInt(value)
  return position <= LAST_POSITION ? position : undefined
}

function toAggregate(value: unknown): Message['aggregate'] | undefined {
  if (value === null) return null
  const { type, id } = (value ?? {}) as Record<string, unknown>
  return isText(type) && isText(id) ? { type, id } : undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

const KINDS: readonly unknown[] = ['created', 'updated', 'deleted', 'custom'] satisfies EventKind[]

function isKind(value: unknown): value is EventKind {
  return KINDS.includes(value)
}
