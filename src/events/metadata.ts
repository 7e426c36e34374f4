import type { InspectOptions } from 'node:util'
import { AftercommitError } from '../errors.ts'
import { setOwn } from './own-property.ts'

/**
 * What is known about an event besides its payload. TypeScript sees camelCase; the database, SQL and JSON see
 * snake_case. Keys of your own pass through unchanged.
 */
export interface EventMetadata {
  /** One value for everything that follows from one request or job. */
  readonly correlationId: string | null
  /** The id of the event whose handling emitted this one. */
  readonly causationId: string | null
  readonly userId: string | null
  /** What kind of actor wrote it, where the emitter or the setting `aftercommit.actor_type` says so: user, service, job. */
  readonly actorType?: string | undefined
  /** On whose behalf the user acted, where the emitter or the setting `aftercommit.acting_for` says so. */
  readonly actingFor?: string | undefined
  /** How long its transaction had run when it was written, in milliseconds. */
  readonly durationMs?: number | undefined
  /** W3C trace context of the emitter. */
  readonly traceparent: string | null
  /** Version of the payload's schema; 1 where nothing is stored. */
  readonly schemaVersion: number
  /** How many events caused one another before this one; 0 for the first. */
  readonly depth: number
  readonly [key: string]: unknown
}

/** What may be given when emitting: any part of it, and keys of your own. */
export type MetadataInput = {
  readonly [Key in keyof KnownMetadata]?: KnownMetadata[Key] | undefined
} & { readonly [key: string]: unknown }

export type StoredMetadata = Record<string, unknown>

interface KnownMetadata {
  correlationId: string | null
  causationId: string | null
  userId: string | null
  actorType: string | null
  actingFor: string | null
  traceparent: string | null
  schemaVersion: number
  depth: number
}

/** To the stored form. What is null, or what reading assumes anyway (version 1, depth 0), is left out. */
export function metadataToStored(metadata: MetadataInput): StoredMetadata {
  const stored: StoredMetadata = {}
  for (const key of Object.keys(metadata)) {
    const value = metadata[key]
    const storedKey = STORED_KEY.get(key)
    if (storedKey === undefined) {
      const name = TYPED_KEY.get(key)
      if (name !== undefined) throw misspelt(key, name)
      setOwn(stored, key, value)
    } else if (value !== null && value !== undefined && value !== ASSUMED[key]) {
      stored[storedKey] = value
    }
  }
  return stored
}

/**
 * From the stored form. A free key spelt like one of ours in camelCase cannot be shown beside it and is left out; our
 * own writers refuse to make one.
 */
export function metadataFromStored(stored: Readonly<StoredMetadata> | null): EventMetadata {
  const metadata: Record<string, unknown> = Object.assign(new PrintableMetadata(), {
    correlationId: toText(stored?.correlation_id),
    causationId: toText(stored?.causation_id),
    userId: toText(stored?.user_id),
    traceparent: toText(stored?.traceparent),
    schemaVersion: toCount(stored?.schema_version, 1),
    depth: toCount(stored?.depth, 0),
  })
  for (const [name, key] of SELDOM) {
    const value = stored?.[key]
    if (value !== undefined && value !== null) metadata[name] = name === 'durationMs' ? Number(value) : toText(value)
  }
  for (const key in stored) {
    if (!TYPED_KEY.has(key) && !STORED_KEY.has(key)) setOwn(metadata, key, stored[key])
  }
  return metadata as EventMetadata
}

/** Metadata whose printed form names no user: console.log, JSON.stringify and loggers show `[REDACTED]` in place of the id. */
class PrintableMetadata {
  declare readonly userId: string | null
  declare readonly actingFor?: string
  readonly [key: string]: unknown

  toJSON(): object {
    return {
      ...this,
      userId: this.userId === null ? null : '[REDACTED]',
      ...(this.actingFor === undefined ? {} : { actingFor: '[REDACTED]' }),
    }
  }

  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: number,
    options: InspectOptions,
    inspect: (value: unknown, options: InspectOptions) => string,
  ): string {
    return inspect(this.toJSON(), options)
  }
}

/** What most events do not have: the metadata has these keys only where they are stored. */
const SELDOM = [
  ['actorType', 'actor_type'],
  ['actingFor', 'acting_for'],
  ['durationMs', 'duration_ms'],
] as const
const STORED_KEY: ReadonlyMap<string, string> = new Map([
  ['correlationId', 'correlation_id'],
  ['causationId', 'causation_id'],
  ['userId', 'user_id'],
  ['traceparent', 'traceparent'],
  ['schemaVersion', 'schema_version'],
  ['depth', 'depth'],
  ...SELDOM,
])
const TYPED_KEY: ReadonlyMap<string, string> = new Map([...STORED_KEY].map(([typed, stored]) => [stored, typed]))
const ASSUMED: Readonly<Record<string, unknown>> = { schemaVersion: 1, depth: 0 }

/** Rows written by plain SQL may hold a number where text is usual. */
function toText(value: unknown): string | null {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : null
}

function toCount(value: unknown, otherwise: number): number {
  if (value === undefined || value === null || value === '') return otherwise
  const count = Number(value)
  return Number.isSafeInteger(count) && count >= otherwise ? count : otherwise
}

function misspelt(key: string, name: string): AftercommitError {
  return new AftercommitError(
    'BAD_EVENT',
    `The metadata has a key "${key}", which is how "${name}" is stored, so nothing was emitted. Write "${name}".`,
  )
}
