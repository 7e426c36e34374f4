/** Our data as JSON, for whoever reads it outside of TypeScript: keys in snake_case, bigint and times as text. */
import type { AftercommitEvent } from './event.ts'
import { Undecodable } from './undecodable.ts'
import { toWire } from './wire.ts'

/** A copy of our own data. Only for what we made ourselves: the keys of a payload are the user's. */
export function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(toPlain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [toSnakeCase(key), toPlain(item)]))
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** All of an event; its user only with `reveal`. */
export function toEventJson(event: AftercommitEvent, { reveal = false } = {}): Record<string, unknown> {
  const wire = toWire(event)
  return {
    ...wire,
    payload: readable(wire.payload),
    changes: readable(wire.changes),
    previous: readable(wire.previous),
    metadata: reveal ? wire.metadata : withoutUsers(wire.metadata),
  }
}

/** A value of an event, or the reason why it cannot be read. */
export function readable(value: unknown): unknown {
  return value instanceof Undecodable ? { undecodable: value.reason, raw: value.raw } : value
}

/** Metadata without who did it, and on whose behalf. */
function withoutUsers(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const masked: Record<string, unknown> = { ...metadata }
  for (const name of ['user_id', 'acting_for']) if (masked[name] != null) masked[name] = '[REDACTED]'
  return masked
}
