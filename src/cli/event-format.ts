/** How events look in a terminal and as JSON. Payloads are shown where they were asked for, users where that was too. */
import { readable } from '../events/index.ts'
import { type AftercommitEvent, stringifyJson, toWire, Undecodable } from '../index.ts'
import type { Column } from './table.ts'

export const EVENT_COLUMNS: readonly Column[] = [
  { title: 'position', align: 'right' },
  { title: 'recorded' },
  { title: 'type', min: 12 },
  { title: 'aggregate', min: 8 },
  { title: 'id', min: 9 },
]

export function toRow(event: AftercommitEvent): string[] {
  return [String(event.position), formatTime(event.recordedAt), event.type, formatAggregate(event), event.id]
}

/** To the second, in UTC: `2026-01-31 12:00:00`. */
export function formatTime(time: Date): string {
  return time
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '')
}

export function formatAggregate({ aggregateType, aggregateId }: AftercommitEvent): string {
  return aggregateType === null ? '–' : `${aggregateType}/${aggregateId}`
}

export function formatPayload(event: AftercommitEvent): string {
  if (event.payload instanceof Undecodable) return `(cannot be read: ${event.payload.reason}) ${event.payload.raw}`
  return stringifyJson(event.payload, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000 })
}

/** Enough to recognise an event; what it says only with `payload`. */
export function toBrief(event: AftercommitEvent, { payload = false } = {}): object {
  const { metadata, payload: content, changes, previous, ...fields } = toWire(event)
  return {
    ...fields,
    correlation_id: event.metadata.correlationId,
    causation_id: event.metadata.causationId,
    ...(payload ? { payload: readable(content), changes: readable(changes), previous: readable(previous) } : {}),
  }
}
