/**
 * What the broadcaster carries: events of the log, seen as a change of a resource or as something that happened to a
 * session. Printing one shows ids, type and position; the resource, its previous image and the user are read by name.
 */
import type { EventKind } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type AuthFields, type AuthType, authFieldsOf, authTypeOf } from './auth.ts'

export type SystemEvent = ResourceEvent | AuthEvent

interface Common {
  /** Of the event in the log; the same on every instance. */
  readonly eventId: string
  readonly position: bigint
  readonly tenant: string | null
  readonly occurredAt: Date
}

export interface ResourceEvent extends Common {
  readonly about: 'resource'
  readonly type: string
  readonly kind: EventKind
  /** Type and id of the aggregate; null for an event that has none. */
  readonly entity: string | null
  readonly id: string | null
  readonly version: number | null
  readonly resource: unknown
  /** The image before, where the emitter gave it: for updates and deletes. */
  readonly previous: Readonly<Record<string, unknown>> | null
}

export interface AuthEvent extends Common, AuthFields {
  readonly about: 'auth'
  readonly type: AuthType
}

export function toSystemEvent(event: AnyEvent): SystemEvent {
  const authType = authTypeOf(event.type)
  return authType === undefined ? new LoggedResource(event) : new LoggedAuth(event, authType)
}

class LoggedEvent {
  readonly eventId: string
  readonly position: bigint
  readonly tenant: string | null
  readonly occurredAt: Date

  constructor(event: AnyEvent) {
    this.eventId = event.id
    this.position = event.position
    this.tenant = event.tenant
    this.occurredAt = event.occurredAt
  }

  toJSON(): object {
    return { ...this, position: String(this.position) }
  }
}

class LoggedResource extends LoggedEvent implements ResourceEvent {
  readonly about = 'resource'
  readonly type: string
  readonly kind: EventKind
  readonly entity: string | null
  readonly id: string | null
  readonly version: number | null
  readonly #event: AnyEvent

  constructor(event: AnyEvent) {
    super(event)
    this.type = event.type
    this.kind = event.kind
    this.entity = event.aggregateType
    this.id = event.aggregateId
    this.version = event.version
    this.#event = event
  }

  get resource(): unknown {
    return this.#event.payload
  }

  get previous(): Readonly<Record<string, unknown>> | null {
    return this.#event.previous
  }
}

class LoggedAuth extends LoggedEvent implements AuthEvent {
  readonly about = 'auth'
  readonly type: AuthType
  readonly #fields: AuthFields

  constructor(event: AnyEvent, type: AuthType) {
    super(event)
    this.type = type
    this.#fields = authFieldsOf(event)
  }

  get userId(): string | null {
    return this.#fields.userId
  }

  get clientId(): string | null {
    return this.#fields.clientId
  }

  get sessionId(): string | null {
    return this.#fields.sessionId
  }

  get tokenId(): string | null {
    return this.#fields.tokenId
  }

  get ip(): string | null {
    return this.#fields.ip
  }

  get reason(): string | null {
    return this.#fields.reason
  }
}
