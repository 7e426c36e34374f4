import type { InspectOptions } from 'node:util'
import { type EventKind, kindOf } from './event-name.ts'
import type { EventMetadata } from './metadata.ts'

export interface Change {
  readonly old: unknown
  readonly new: unknown
}

/** Field → old and new value, for exactly the fields that changed. */
export type Changes = Readonly<Record<string, Change>>

/** What an event is made of. */
export interface EventFields<Type extends string = string, Payload = unknown> {
  readonly id: string
  readonly type: Type
  readonly position: bigint
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly version: number | null
  readonly payload: Payload
  readonly changes: Changes | null
  readonly previous: Readonly<Record<string, unknown>> | null
  readonly tenant: string | null
  readonly metadata: EventMetadata
  readonly occurredAt: Date
  readonly recordedAt: Date
}

/** The printable part of an event. */
export interface EventLogForm {
  readonly id: string
  readonly type: string
  readonly position: string
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly correlation_id: string | null
  readonly trace_id: string | null
  readonly user_id: '[REDACTED]' | null
}

// The payload, `changes`, `previous` and metadata are private fields, so printing, spreading, Object.assign and loggers that walk
// keys and symbols never meet them. Subclasses read them by these names, which belong to the prototype and not to the event.
export const PAYLOAD = Symbol('payload')
export const CHANGES = Symbol('changes')
export const PREVIOUS = Symbol('previous')
export const METADATA = Symbol('metadata')

/**
 * An event as read from the log. Printing it in any way (console.log, JSON.stringify, a logger) shows ids, type and
 * position and never the payload or the user; `toWire` and `toCloudEvent` give the whole of it on purpose.
 *
 * The fields are declared rather than initialised: one write each, because every event read passes through here.
 */
export class AftercommitEvent<Type extends string = string, Payload = unknown> {
  declare readonly id: string
  declare readonly type: Type
  /** Place in the global order. */
  declare readonly position: bigint
  declare readonly aggregateType: string | null
  declare readonly aggregateId: string | null
  /** 1, 2, … within an aggregate kept as a stream; null for plain events. */
  declare readonly version: number | null
  declare readonly tenant: string | null
  /** The emitter's time. */
  declare readonly occurredAt: Date
  /** The database's time. */
  declare readonly recordedAt: Date
  // A value, or the text that a subclass reads the value from.
  readonly #payload: unknown
  readonly #changes: unknown
  readonly #previous: unknown
  readonly #metadata: unknown

  constructor(fields: EventFields<Type, Payload>) {
    this.id = fields.id
    this.type = fields.type
    this.position = fields.position
    this.aggregateType = fields.aggregateType
    this.aggregateId = fields.aggregateId
    this.version = fields.version
    this.tenant = fields.tenant
    this.occurredAt = fields.occurredAt
    this.recordedAt = fields.recordedAt
    this.#payload = fields.payload
    this.#changes = fields.changes
    this.#previous = fields.previous
    this.#metadata = fields.metadata
  }

  protected get [PAYLOAD](): unknown {
    return this.#payload
  }

  protected get [CHANGES](): unknown {
    return this.#changes
  }

  protected get [PREVIOUS](): unknown {
    return this.#previous
  }

  protected get [METADATA](): unknown {
    return this.#metadata
  }

  get payload(): Payload {
    return this.#payload as Payload
  }

  /** Old and new value per changed field, where the emitter or capture gave them. */
  get changes(): Changes | null {
    return this.#changes as Changes | null
  }

  /** The row before, for captured updates and deletes. */
  get previous(): Readonly<Record<string, unknown>> | null {
    return this.#previous as Readonly<Record<string, unknown>> | null
  }

  get metadata(): EventMetadata {
    return this.#metadata as EventMetadata
  }

  get kind(): EventKind {
    return kindOf(this.type)
  }

  /** The trace id within `traceparent`; null when there is none or it is malformed. */
  get traceId(): string | null {
    return traceIdOf(this.metadata.traceparent)
  }

  /** What order goes by: the aggregate, or the event itself when it has none. */
  get key(): string {
    return this.aggregateType === null || this.aggregateId === null
      ? this.id
      : aggregateKey(this.aggregateType, this.aggregateId)
  }

  toLog(): EventLogForm {
    return {
      id: this.id,
      type: this.type,
      position: String(this.position),
      aggregate_type: this.aggregateType,
      aggregate_id: this.aggregateId,
      correlation_id: this.metadata.correlationId,
      trace_id: this.traceId,
      user_id: this.metadata.userId === null ? null : '[REDACTED]',
    }
  }

  toJSON(): EventLogForm {
    return this.toLog()
  }

  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: number,
    options: InspectOptions,
    inspect: (value: unknown, options: InspectOptions) => string,
  ): string {
    return `AftercommitEvent ${inspect(this.toLog(), options)}`
  }
}

/** `type/id`. A slash within the type is escaped, so two aggregates never share a key. */
export function aggregateKey(type: string, id: string): string {
  const plain = type.includes('/') || type.includes('%') ? type.replaceAll('%', '%25').replaceAll('/', '%2F') : type
  return `${plain}/${id}`
}

/** For loggers with serialisers: `pino({ serializers: { event: eventSerializer } })`. Safe for whatever it is given. */
export function eventSerializer(value: unknown): EventLogForm | '[not an event]' {
  return value instanceof AftercommitEvent ? value.toLog() : '[not an event]'
}

function traceIdOf(traceparent: string | null): string | null {
  if (traceparent === null) return null
  const traceId = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent)?.[1]
  return traceId === undefined || traceId === NO_TRACE ? null : traceId
}

const NO_TRACE = '0'.repeat(32)
