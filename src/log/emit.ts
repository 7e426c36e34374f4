/**
 * From what a caller hands over to rows of the log: check, complete, write. Everything that Postgres or JSON cannot hold
 * is refused before a statement is sent, so that the caller's transaction stays usable.
 */
import { AftercommitError } from '../errors.ts'
import {
  type Changes,
  checkAggregate,
  checkEventId,
  checkEventName,
  checkPayload,
  checkTenant,
  type EventDefinitions,
  type JsonLimits,
  type MetadataInput,
  metadataToStored,
  newEventId,
  stringifyJson,
} from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type Cause, currentCause } from '../runtime/index.ts'
import { explainAppendError } from './append-error.ts'
import { appendMany, appendOne, appendOwn, type PreparedEvent, type Preparing } from './statements.ts'
import { isTooEarly, toTimestampText } from './timestamp-text.ts'

export interface EmitInput<Payload = unknown> {
  readonly aggregate?: { readonly type: string; readonly id: string } | undefined
  readonly payload: Payload
  /** Field → old and new value. */
  readonly changes?: Changes | undefined
  /** The image before, where the event tells of a change. */
  readonly previous?: Readonly<Record<string, unknown>> | undefined
  readonly tenant?: string | undefined
  readonly metadata?: MetadataInput | undefined
  /** Chosen by the caller: appending it again writes nothing and gives the first position back. */
  readonly id?: string | undefined
  readonly occurredAt?: Date | undefined
  /** The version that the stream must be at; 0 for a stream that must not exist yet. */
  readonly expectedVersion?: number | undefined
}

/** What was appended, and where. */
export interface Emitted {
  readonly id: string
  readonly position: bigint
  /** Place in its stream; null for plain events. */
  readonly version: number | null
}

export interface EmitSettings extends Preparing {
  readonly definitions: EventDefinitions | undefined
  readonly maxPayloadBytes: number
  readonly maxNesting: number
  readonly maxDepth: number
  readonly currentTraceparent: () => string | undefined
  /** The schema refused an append: a newer version has migrated it. */
  readonly onSchemaTooNew?: (() => void) | undefined
  /** Told of each event at debug level; absent when nobody reads that. */
  readonly tell?: ((fields: Record<string, unknown>) => void) | undefined
}

export interface EmitRequest extends EmitInput {
  readonly type: string
}

/** Many at once, in one statement: all or none. */
export async function emitEvents(
  db: Queryable,
  settings: EmitSettings,
  requests: readonly EmitRequest[],
): Promise<Emitted[]> {
  if (requests.length === 0) return []
  if (requests.length === 1) return [await emitEvent(db, settings, requests[0]!.type, requests[0]!)]
  const awaited = prepareAll(requests, settings)
  const prepared = awaited instanceof Promise ? await awaited : awaited
  let answers: string[]
  try {
    answers = await appendMany(db, prepared, settings)
  } catch (error) {
    throw explain(error, requests, settings)
  }
  const emitted = answers.map((answer, i) => toEmitted(prepared[i]!.id, answer))
  if (settings.tell) for (const [i, event] of prepared.entries()) settings.tell(toLogFields(event, emitted[i]!))
  return emitted
}

/** The common case. It pauses once, for the database: each further pause would be felt at thousands of events a second. */
export async function emitEvent(
  db: Queryable,
  settings: EmitSettings,
  type: string,
  input: EmitInput,
): Promise<Emitted> {
  const awaited = prepareEvent(type, input, settings)
  const prepared = awaited instanceof Promise ? await awaited : awaited
  let answer: string
  try {
    answer = (await appendOne(db, prepared, settings)).rows[0]!.appended
  } catch (error) {
    throw explain(error, [{ ...input, type }], settings)
  }
  const emitted = toEmitted(prepared.id, answer)
  settings.tell?.(toLogFields(prepared, emitted))
  return emitted
}

/** An event of the library itself, with an id of its choice. Only the role of a running process may append it. */
export async function emitOwn(db: Queryable, settings: EmitSettings, type: string, input: OwnInput): Promise<Emitted> {
  const prepared = await completeEvent(type, input, input.payload, 1, settings)
  try {
    return toEmitted(prepared.id, await appendOwn(db, prepared))
  } catch (error) {
    throw explain(error, [{ ...input, type }], settings)
  }
}

export type OwnInput = Required<Pick<EmitInput, 'id' | 'payload'>>

function explain(error: unknown, requests: readonly EmitRequest[], { onSchemaTooNew }: EmitSettings): unknown {
  const explained = explainAppendError(error, requests)
  if (explained instanceof AftercommitError && explained.code === 'SCHEMA_TOO_NEW') onSchemaTooNew?.()
  return explained
}

function toLogFields({ id, type, metadata }: PreparedEvent, { position }: Emitted): Record<string, unknown> {
  const { correlation_id, traceparent } = JSON.parse(metadata) as Record<string, string | undefined>
  return {
    event_id: id,
    event_type: type,
    position: String(position),
    correlation_id,
    trace_id: traceparent?.split('-')[1],
  }
}

/** Only a schema that works asynchronously is awaited: a batch of a thousand would otherwise pause a thousand times. */
function prepareAll(
  requests: readonly EmitRequest[],
  settings: EmitSettings,
): PreparedEvent[] | Promise<PreparedEvent[]> {
  const prepared = requests.map((request) => prepareEvent(request.type, request, settings))
  return prepared.some((one) => one instanceof Promise) ? Promise.all(prepared) : (prepared as PreparedEvent[])
}

/** `position` or `position:version`. */
function toEmitted(id: string, answer: string): Emitted {
  const colon = answer.indexOf(':')
  return colon < 0
    ? { id, position: BigInt(answer), version: null }
    : { id, position: BigInt(answer.slice(0, colon)), version: Number(answer.slice(colon + 1)) }
}

function prepareEvent(type: string, input: EmitInput, settings: EmitSettings): PreparedEvent | Promise<PreparedEvent> {
  const { aggregate, id, tenant, occurredAt, expectedVersion } = input
  checkEventName(type)
  if (type.startsWith('aftercommit.')) {
    throw new AftercommitError(
      'BAD_EVENT_NAME',
      `"${type}": names that begin with "aftercommit." are the library's own, so nothing was emitted.`,
    )
  }
  if (aggregate !== undefined) checkAggregate(aggregate)
  if (id !== undefined) checkEventId(id)
  if (tenant !== undefined) checkTenant(tenant)
  if (occurredAt !== undefined) checkTime(type, occurredAt)
  if (expectedVersion !== undefined) checkVersion(type, expectedVersion)
  const { definitions } = settings
  if (definitions === undefined) return completeEvent(type, input, input.payload, 1, settings)
  const version = definitions.get(type)?.version ?? 1
  const payload = checkPayload(definitions, type, input.payload)
  return payload instanceof Promise
    ? payload.then((output) => completeEvent(type, input, output, version, settings))
    : completeEvent(type, input, payload, version, settings)
}

function completeEvent(
  type: string,
  input: EmitInput,
  payload: unknown,
  schemaVersion: number,
  settings: EmitSettings,
): PreparedEvent {
  const { aggregate, occurredAt } = input
  const id = input.id ?? newEventId()
  const cause = currentCause()
  const limits = limitsOf(settings)
  return {
    id,
    type,
    aggregateType: aggregate?.type ?? null,
    aggregateId: aggregate?.id ?? null,
    payload: stringifyJson(payload ?? null, limits),
    metadata: metadataText(type, input, { id, schemaVersion, cause, limits }, settings),
    occurredAt: occurredAt === undefined ? null : toTimestampText(occurredAt),
    extra: extraOf(input, cause, limits),
  }
}

/** What an event is completed with. */
interface Completion {
  readonly id: string
  readonly schemaVersion: number
  readonly cause: Cause | undefined
  readonly limits: Required<JsonLimits>
}

/** An event that nothing led to, as most are, carries its own id and nothing else. */
function metadataText(type: string, input: EmitInput, completion: Completion, settings: EmitSettings): string {
  const { id, schemaVersion, cause, limits } = completion
  const traceparent = settings.currentTraceparent()
  const plain = input.metadata === undefined && schemaVersion === 1 && cause === undefined
  if (plain && traceparent === undefined) return `{"correlation_id":${JSON.stringify(id)}}`
  const metadata = completeMetadata(type, input, completion, traceparent, settings.maxDepth)
  return stringifyJson(metadata, { ...limits, name: 'metadata' })
}

/** What the caller gives wins; the rest follows from the event being handled, or begins a new chain. */
function completeMetadata(
  type: string,
  { metadata }: EmitInput,
  { id, schemaVersion, cause }: Completion,
  traceparent: string | undefined,
  maxDepth: number,
) {
  const depth = Math.max(cause === undefined ? 0 : cause.depth + 1, Number(metadata?.depth ?? 0))
  if (depth > maxDepth) {
    throw new AftercommitError(
      'TOO_DEEP',
      `"${type}" would be event number ${depth} in a chain of causes, more than ${maxDepth}, so nothing ` +
        'was emitted. An event probably causes itself: look at its causation chain, or raise `log.maxDepth`.',
    )
  }
  const stored = metadataToStored({
    userId: cause?.userId ?? null,
    traceparent: traceparent ?? cause?.traceparent ?? null,
    ...metadata,
    correlationId: metadata?.correlationId ?? cause?.correlationId ?? id,
    causationId: metadata?.causationId ?? cause?.causationId ?? null,
    schemaVersion,
    depth,
  })
  // Said aloud, so that the database does not fill in what the session says.
  if (metadata?.userId === null) stored.user_id = null
  if (metadata?.actingFor === null) stored.acting_for = null
  return stored
}

/** Made once per instance. */
function limitsOf(settings: EmitSettings): Required<JsonLimits> {
  const known = limitsBySettings.get(settings)
  if (known) return known
  const limits = { maxBytes: settings.maxPayloadBytes, maxDepth: settings.maxNesting, name: 'payload' }
  limitsBySettings.set(settings, limits)
  return limits
}

const limitsBySettings = new WeakMap<EmitSettings, Required<JsonLimits>>()

function extraOf(input: EmitInput, cause: Cause | undefined, limits: Required<JsonLimits>): string | null {
  const tenant = input.tenant ?? cause?.tenant
  const { changes, previous, id, expectedVersion } = input
  const none = tenant ?? changes ?? previous ?? id ?? expectedVersion
  if (none === undefined) return null
  const extra: Record<string, unknown> = {}
  if (tenant !== undefined) extra.tenant = tenant
  if (changes !== undefined) extra.changes = changes
  if (previous !== undefined) extra.previous = previous
  if (id !== undefined) extra.chosen = true
  if (expectedVersion !== undefined) extra.expected = expectedVersion
  return stringifyJson(extra, { maxBytes: limits.maxBytes * 2, maxDepth: limits.maxDepth + 2, name: 'event' })
}

function checkTime(type: string, time: Date): void {
  if (time instanceof Date && Number.isFinite(time.getTime()) && !isTooEarly(time)) return
  throw new AftercommitError(
    'BAD_EVENT',
    `occurredAt of "${type}" is not a valid Date from 4714 BC on, so nothing was emitted. Give one, or leave it out.`,
  )
}

function checkVersion(type: string, version: number): void {
  if (Number.isSafeInteger(version) && version >= 0) return
  throw new AftercommitError(
    'BAD_EVENT',
    `expectedVersion of "${type}" must be a whole number from 0 (no event yet) up, so nothing was emitted.`,
  )
}
