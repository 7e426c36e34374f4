import { AftercommitError } from '../errors.ts'
import { type AftercommitEvent, aggregateKey, type Changes } from './event.ts'
import { parseJson } from './json-parse.ts'
import { stringifyJson } from './json-write.ts'
import { type EventMetadata, metadataFromStored, metadataToStored, type StoredMetadata } from './metadata.ts'
import { formatTime } from './wire.ts'

/**
 * CloudEvents 1.0, JSON format, both ways. What the standard has no attribute for travels in extension attributes,
 * whose names are lower-case letters and digits; those that are JSON themselves travel as text. Write the result with
 * `stringifyJson`, so that exact numbers in `data` survive.
 */
export interface CloudEvent {
  readonly specversion: '1.0'
  readonly id: string
  readonly source: string
  readonly type: string
  readonly subject?: string
  readonly time?: string
  readonly datacontenttype?: string
  readonly data?: unknown
  readonly [extension: string]: unknown
}

/** The content of a CloudEvent, ours or anybody's. What its sender did not say is null. */
export interface ReceivedEvent {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly subject: string | null
  readonly aggregate: { readonly type: string; readonly id: string } | null
  readonly version: number | null
  readonly position: bigint | null
  readonly payload: unknown
  readonly changes: Changes | null
  readonly previous: Readonly<Record<string, unknown>> | null
  readonly tenant: string | null
  readonly metadata: EventMetadata
  readonly occurredAt: Date | null
  readonly recordedAt: Date | null
}

/** The `source` of every CloudEvent of a log, unless a live feed or a relay is given another one. */
export function defaultSource(schema: string): string {
  return `urn:aftercommit:${encodeURIComponent(schema)}`
}

export function toCloudEvent(event: AftercommitEvent, { source }: { source: string }): CloudEvent {
  if (source === '') throw bad('source', 'is empty; give a URI such as "https://shop.example/orders"')
  const { aggregateType, aggregateId } = event
  const stored = metadataToStored(event.metadata)
  const { correlation_id, causation_id, user_id, traceparent, schema_version, depth, ...free } = stored
  const occurred = formatTime(event.occurredAt)
  const attributes: Record<string, unknown> = {
    specversion: '1.0',
    id: event.id,
    source,
    type: event.type,
    subject: aggregateType === null || aggregateId === null ? null : aggregateKey(aggregateType, aggregateId),
    // The standard's timestamps end with the year 9999; a time beyond it has an attribute of its own.
    time: isPlainYear(occurred) ? occurred : null,
    occurredtime: isPlainYear(occurred) ? null : occurred,
    recordedtime: formatTime(event.recordedAt),
    datacontenttype: 'application/json',
    partitionkey: event.key,
    position: String(event.position),
    aggregatetype: aggregateType,
    aggregateid: aggregateId,
    aggregateversion: event.version === null ? null : String(event.version),
    tenant: event.tenant,
    correlationid: correlation_id,
    causationid: causation_id,
    userid: user_id,
    traceparent,
    schemaversion: schema_version,
    depth,
    changes: toText(event.changes),
    previous: toText(event.previous),
    metadata: Object.keys(free).length === 0 ? null : toText(free),
  }
  const present = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined)
  return { ...(Object.fromEntries(present) as unknown as CloudEvent), data: event.payload }
}

/** Takes one CloudEvent, as JSON text or already parsed. Throws BAD_CLOUDEVENT with the name of the attribute. */
export function fromCloudEvent(json: unknown): ReceivedEvent {
  const given = typeof json === 'string' ? parseJson(json) : json
  if (typeof given !== 'object' || given === null) throw bad(null, 'is not a JSON object')
  if (Array.isArray(given)) throw bad(null, 'is a batch; give its members one by one')
  const attributes = given as Record<string, unknown>
  if (read(attributes, 'specversion') !== '1.0') throw bad('specversion', 'is not "1.0"')
  if (read(attributes, 'data_base64') !== undefined) throw bad('data_base64', 'holds bytes; only JSON data is taken')
  return {
    id: required(attributes, 'id'),
    source: required(attributes, 'source'),
    type: required(attributes, 'type'),
    subject: optional(attributes, 'subject'),
    aggregate: readAggregate(attributes),
    version: readCount(attributes, 'aggregateversion'),
    position: readPosition(attributes),
    payload: read(attributes, 'data') ?? null,
    changes: readObject(attributes, 'changes') as Changes | null,
    previous: readObject(attributes, 'previous'),
    tenant: optional(attributes, 'tenant'),
    metadata: readMetadata(attributes),
    occurredAt: readTime(attributes, 'time') ?? readTime(attributes, 'occurredtime'),
    recordedAt: readTime(attributes, 'recordedtime'),
  }
}

function toText(value: unknown): string | null {
  return value === null ? null : stringifyJson(value, { maxBytes: Number.POSITIVE_INFINITY, maxDepth: 1000 })
}

function isPlainYear(time: string | null): boolean {
  return time !== null && /^\d{4}-/.test(time)
}

function readAggregate(attributes: Record<string, unknown>): ReceivedEvent['aggregate'] {
  const type = optional(attributes, 'aggregatetype')
  const id = optional(attributes, 'aggregateid')
  if (type === null && id === null) return null
  if (type === null) throw bad('aggregatetype', 'is missing although aggregateid is there')
  if (id === null) throw bad('aggregateid', 'is missing although aggregatetype is there')
  return { type, id }
}

function readMetadata(attributes: Record<string, unknown>): EventMetadata {
  const known: StoredMetadata = {
    correlation_id: optional(attributes, 'correlationid'),
    causation_id: optional(attributes, 'causationid'),
    user_id: optional(attributes, 'userid'),
    traceparent: optional(attributes, 'traceparent'),
    schema_version: readCount(attributes, 'schemaversion'),
    depth: readCount(attributes, 'depth'),
  }
  return metadataFromStored({ ...readObject(attributes, 'metadata'), ...known })
}

function readPosition(attributes: Record<string, unknown>): bigint | null {
  const text = optional(attributes, 'position')
  if (text === null) return null
  if (!/^-?\d{1,19}$/.test(text)) throw bad('position', 'is not a whole number as text')
  return BigInt(text)
}

function readCount(attributes: Record<string, unknown>, name: string): number | null {
  const value = read(attributes, name)
  if (value === undefined || value === null) return null
  const count = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0) throw bad(name, 'is not a whole number')
  return count
}

function readTime(attributes: Record<string, unknown>, name: string): Date | null {
  const text = optional(attributes, name)
  if (text === null) return null
  const time = new Date(text)
  if (!TIMESTAMP.test(text) || Number.isNaN(time.getTime()))
    throw bad(name, 'is not a timestamp like 2026-03-01T12:00:00Z')
  return time
}

const TIMESTAMP = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

function readObject(attributes: Record<string, unknown>, name: string): Record<string, unknown> | null {
  const text = optional(attributes, name)
  if (text === null) return null
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    throw bad(name, 'is not valid JSON text', cause)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw bad(name, 'is not an object as JSON text')
  return value as Record<string, unknown>
}

function required(attributes: Record<string, unknown>, name: string): string {
  const value = optional(attributes, name)
  if (value === null || value === '') throw bad(name, 'is missing or empty')
  return value
}

function optional(attributes: Record<string, unknown>, name: string): string | null {
  const value = read(attributes, name)
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') throw bad(name, 'is not text')
  return value
}

function read(attributes: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined
}

function bad(attribute: string | null, reason: string, cause?: unknown): AftercommitError {
  const what = attribute === null ? 'The CloudEvent' : `The CloudEvent attribute "${attribute}"`
  return new AftercommitError(
    'BAD_CLOUDEVENT',
    `${what} ${reason}, so the event is refused. See CloudEvents 1.0, JSON format.`,
    { cause },
  )
}
