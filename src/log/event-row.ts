/**
 * How a row of the log becomes an event. Everything arrives as text or a number: jsonb as text, so that it is read only
 * when somebody looks at it and numbers no double can hold are seen before they are rounded; times as milliseconds,
 * which is three times cheaper than parsing the text of a timestamp.
 */
import { type AftercommitEvent, StoredEvent } from '../events/index.ts'

// Not `as position`: ORDER BY prefers the name of an output column, and would sort positions as text.
export const eventColumns = `position::text as pos, id, type, aggregate_type, aggregate_id, version::text as version, tenant,
  payload::text as payload, changes::text as changes, previous::text as previous, metadata::text as metadata,
  (extract(epoch from occurred_at) * 1000)::float8 as occurred, (extract(epoch from recorded_at) * 1000)::float8 as recorded`

export interface EventRow {
  readonly pos: string
  readonly id: string
  readonly type: string
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly version: string | null
  readonly tenant: string | null
  readonly payload: string | null
  readonly changes: string | null
  readonly previous: string | null
  readonly metadata: string
  readonly occurred: number | string
  readonly recorded: number | string
}

/** An event whose payload the reader does not know the type of. */
export type AnyEvent = AftercommitEvent<string, unknown>

/** Whoever hands it to somebody hands on a copy: the same object serves several readers and attempts. */
export function toEvent(row: EventRow): AnyEvent {
  return new StoredEvent({
    id: row.id,
    type: row.type,
    position: BigInt(row.pos),
    aggregateType: row.aggregate_type,
    aggregateId: row.aggregate_id,
    version: row.version === null ? null : Number(row.version),
    tenant: row.tenant,
    payload: row.payload,
    changes: row.changes,
    previous: row.previous,
    metadata: row.metadata,
    occurredAt: toDate(row.occurred),
    recordedAt: toDate(row.recorded),
  })
}

/** About how much memory a row takes: what pages and buffers are bounded by. */
export function rowSize(row: EventRow): number {
  return (
    500 + (row.payload?.length ?? 0) + (row.changes?.length ?? 0) + (row.previous?.length ?? 0) + row.metadata.length
  )
}

/** Postgres knows times beyond what a Date holds, and infinity: they become the first and the last Date there is. */
function toDate(ms: number | string): Date {
  const value = Number(ms)
  return new Date(Math.min(Math.max(value, -LAST_DATE_MS), LAST_DATE_MS))
}

const LAST_DATE_MS = 8.64e15
