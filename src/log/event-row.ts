/**
 * How a row of the log becomes an event. Everything arrives as text or a number: jsonb as text, so that it is read only
 * when somebody looks at it and numbers no double can hold are seen before they are rounded; times as milliseconds,
 * which is three times cheaper than parsing the text of a timestamp.
 */
import { type AftercommitEvent, StoredEvent, Undecodable } from '../events/index.ts'

/**
 * The most bytes of JSON text that a reader loads. `check_event` refuses larger events; one of an older log, or one that the
 * owner wrote past the functions, is passed without its content and becomes a dead letter.
 */
export const LARGEST_EVENT = 16_777_216

// Not `as position`: ORDER BY prefers the name of an output column, and would sort positions as text.
export const eventColumns = `position::text as pos, id, type, aggregate_type, aggregate_id, version::text as version, tenant, bytes,
  ${['payload', 'changes', 'previous', 'metadata'].map((part) => `case when bytes <= ${LARGEST_EVENT} then ${part}::text end as ${part}`).join(', ')},
  (extract(epoch from occurred_at) * 1000)::float8 as occurred, (extract(epoch from recorded_at) * 1000)::float8 as recorded,
  (extract(epoch from recorded_at - began_at) * 1000)::float8 as lasted`

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
  /** Null only where the event is larger than a reader loads. */
  readonly metadata: string | null
  /** Of payload, changes, previous and metadata as JSON text. */
  readonly bytes: number | string
  readonly occurred: number | string
  readonly recorded: number | string
  /** How long its transaction had run; null or absent where that is not known. */
  readonly lasted?: number | string | null
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
    payload: isTooLarge(row) ? tooLarge(row) : row.payload,
    changes: row.changes,
    previous: row.previous,
    metadata: row.metadata ?? '{}',
    occurredAt: toDate(row.occurred),
    recordedAt: toDate(row.recorded),
    durationMs: row.lasted === null || row.lasted === undefined ? undefined : Number(row.lasted),
  })
}

/** Whether the row came without its content. */
export function isTooLarge({ bytes }: EventRow): boolean {
  return Number(bytes) > LARGEST_EVENT
}

function tooLarge({ bytes }: EventRow): Undecodable {
  return new Undecodable(`The event has ${bytes} bytes of JSON, and a reader loads at most ${LARGEST_EVENT}.`, '')
}

/** About how much memory a row takes: what pages and buffers are bounded by. */
export function rowSize(row: EventRow): number {
  return 500 + (isTooLarge(row) ? 0 : Number(row.bytes))
}

/** Postgres knows times beyond what a Date holds, and infinity: they become the first and the last Date there is. */
function toDate(ms: number | string): Date {
  const value = Number(ms)
  return new Date(Math.min(Math.max(value, -LAST_DATE_MS), LAST_DATE_MS))
}

const LAST_DATE_MS = 8.64e15
