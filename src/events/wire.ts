import { AftercommitError } from '../errors.ts'
import { AftercommitEvent, type Changes } from './event.ts'
import { metadataFromStored, metadataToStored, type StoredMetadata } from './metadata.ts'

/** The whole event as JSON: snake_case, the position as text. To be written with `stringifyJson`. */
export interface WireEvent {
  readonly id: string
  readonly type: string
  readonly position: string
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly version: number | null
  readonly payload: unknown
  readonly changes: Changes | null
  readonly previous: Readonly<Record<string, unknown>> | null
  readonly tenant: string | null
  readonly metadata: StoredMetadata
  /** ISO 8601, with a signed six-digit year outside of 0 to 9999; null for a time that JavaScript has no date for. */
  readonly occurred_at: string | null
  readonly recorded_at: string | null
}

/** Everything, payload and user included: for storing and sending, not for logs. */
export function toWire(event: AftercommitEvent): WireEvent {
  return {
    id: event.id,
    type: event.type,
    position: String(event.position),
    aggregate_type: event.aggregateType,
    aggregate_id: event.aggregateId,
    version: event.version,
    payload: event.payload,
    changes: event.changes,
    previous: event.previous,
    tenant: event.tenant,
    metadata: metadataToStored(event.metadata),
    occurred_at: formatTime(event.occurredAt),
    recorded_at: formatTime(event.recordedAt),
  }
}

/** The way back. */
export function fromWire(wire: WireEvent): AftercommitEvent {
  if (typeof wire.id !== 'string' || typeof wire.type !== 'string' || !/^-?\d{1,19}$/.test(wire.position)) {
    throw new AftercommitError(
      'BAD_EVENT',
      'The value given to fromWire has no id, type or position, so it is not an event. Give what toWire made.',
    )
  }
  return new AftercommitEvent({
    id: wire.id,
    type: wire.type,
    position: BigInt(wire.position),
    aggregateType: wire.aggregate_type,
    aggregateId: wire.aggregate_id,
    version: wire.version,
    payload: wire.payload,
    changes: wire.changes,
    previous: wire.previous,
    tenant: wire.tenant,
    metadata: metadataFromStored(wire.metadata),
    occurredAt: new Date(wire.occurred_at ?? Number.NaN),
    recordedAt: new Date(wire.recorded_at ?? Number.NaN),
  })
}

/** Postgres knows `infinity` and years beyond JavaScript's; those arrive as an invalid date and must not throw here. */
export function formatTime(time: Date): string | null {
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
