import type { AftercommitEvent, EventMetadata } from '../events/index.ts'
import type { Shape } from './shape.ts'
import { isMap } from './values.ts'

/**
 * What a condition can see of one event, and nothing else: the event, its payload, and the environment variables it is
 * given. Making one copies nothing; the parts that have to be built are built when they are asked for.
 */
export class Scope {
  readonly event: AftercommitEvent
  readonly payload: unknown
  /** The payload where it has fields, which stand at top level. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string>>
  private envelope: Readonly<Record<string, unknown>> | undefined = undefined
  private storedMetadata: Readonly<Record<string, unknown>> | undefined = undefined

  constructor(event: AftercommitEvent, env: Readonly<Record<string, string>>) {
    this.event = event
    this.payload = event.payload
    this.fields = isMap(this.payload) ? this.payload : NOTHING
    this.env = env
  }

  /** `event` as a whole, for the rare expression that does not just read one of its fields. */
  get eventView(): Readonly<Record<string, unknown>> {
    this.envelope ??= Object.fromEntries([...EVENT_FIELDS].map(([name, field]) => [name, field.read(this)]))
    return this.envelope
  }

  get metadata(): Readonly<Record<string, unknown>> {
    this.storedMetadata ??= toSnakeCase(this.event.metadata)
    return this.storedMetadata
  }
}

/** `env` holds exactly the variables that conditions and templates may read. */
export function scopeOf(event: AftercommitEvent, env: Readonly<Record<string, string>> = NOTHING): Scope {
  return new Scope(event, env)
}

/** Names that always mean this; payload fields of the same name are reached through `payload`. */
export const RESERVED_NAMES = ['event', 'payload', 'changes', 'previous', 'env'] as const
export type ReservedName = (typeof RESERVED_NAMES)[number]

export function isReserved(name: string): name is ReservedName {
  return (RESERVED_NAMES as readonly string[]).includes(name)
}

interface EventField {
  read(scope: Scope): unknown
  readonly shape: Shape
}

export const EVENT_FIELDS: ReadonlyMap<string, EventField> = new Map<string, EventField>([
  ['id', { read: ({ event }) => event.id, shape: { kinds: ['text'] } }],
  ['type', { read: ({ event }) => event.type, shape: { kinds: ['text'] } }],
  ['kind', { read: ({ event }) => event.kind, shape: { kinds: ['text'] } }],
  ['position', { read: ({ event }) => event.position, shape: { kinds: ['number'] } }],
  ['aggregate_type', { read: ({ event }) => event.aggregateType, shape: { kinds: ['text'] } }],
  ['aggregate_id', { read: ({ event }) => event.aggregateId, shape: { kinds: ['text'] } }],
  ['version', { read: ({ event }) => event.version, shape: { kinds: ['number'] } }],
  ['tenant', { read: ({ event }) => event.tenant, shape: { kinds: ['text'] } }],
  ['occurred_at', { read: ({ event }) => event.occurredAt, shape: { kinds: ['timestamp'] } }],
  ['recorded_at', { read: ({ event }) => event.recordedAt, shape: { kinds: ['timestamp'] } }],
  ['metadata', { read: (scope) => scope.metadata, shape: { kinds: ['map'] } }],
])

const NOTHING: Readonly<Record<string, never>> = Object.freeze(Object.create(null))

/** The stored spelling. What is null is left out, as it is in the log, so that `has(event.metadata.user_id)` tells. */
function toSnakeCase(metadata: EventMetadata): Record<string, unknown> {
  const stored: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(metadata)) {
    if (metadata[key] !== null) stored[METADATA_NAMES.get(key) ?? key] = metadata[key]
  }
  return stored
}

const METADATA_NAMES: ReadonlyMap<string, string> = new Map([
  ['correlationId', 'correlation_id'],
  ['causationId', 'causation_id'],
  ['userId', 'user_id'],
  ['actorType', 'actor_type'],
  ['actingFor', 'acting_for'],
  ['durationMs', 'duration_ms'],
  ['schemaVersion', 'schema_version'],
])
