import { AftercommitError } from '../errors.ts'
import type { EventDefinition, EventDefinitions } from './define-events.ts'
import { versionSuffix } from './event-name.ts'
import { quoted } from './quoted.ts'

/** The part of a stored event that a newer schema changes. */
export interface VersionedEvent {
  readonly id: string
  readonly type: string
  readonly payload: unknown
  /** As stored; 1 where nothing is stored. A `.vN` in the type says the same and wins. */
  readonly schemaVersion: number
}

/**
 * Lifts a stored event to the version its definition has now, one step at a time: 1 → 2 → 3. What needs no lifting,
 * and types the catalogue does not know, come back as they are. Events of a version this code does not know are never
 * guessed at.
 */
export function upcast(definitions: EventDefinitions, stored: VersionedEvent): VersionedEvent {
  const definition = definitions.currentFor(stored.type)
  if (definition === undefined) return stored
  const from = versionSuffix(stored.type) ?? stored.schemaVersion
  if (from > definition.version) throw new SchemaVersionTooNewError(stored, from, definition.version)
  if (from === definition.version && stored.type === definition.name) return stored
  const payload = applySteps(definition, stored, from)
  return { id: stored.id, type: definition.name, payload, schemaVersion: definition.version }
}

/** A newer release wrote this event. Reading stops here until this process is updated too. */
export class SchemaVersionTooNewError extends AftercommitError {
  readonly eventName: string
  readonly eventId: string
  readonly found: number
  readonly known: number

  constructor(event: { id: string; type: string }, found: number, known: number) {
    super(
      'SCHEMA_VERSION_TOO_NEW',
      `Event ${quoted(event.id)} of type ${quoted(event.type)} has schema version ${found}, but this process knows ` +
        `versions up to ${known}, so it was not read. Deploy the release that defines version ${found}.`,
    )
    this.eventName = event.type
    this.eventId = event.id
    this.found = found
    this.known = known
  }
}

export class UpcastFailedError extends AftercommitError {
  readonly eventName: string
  readonly eventId: string
  /** The step that failed: from this version to the next. */
  readonly fromVersion: number

  constructor(event: { id: string; type: string }, fromVersion: number, cause: unknown) {
    super(
      'UPCAST_FAILED',
      `Upcast step ${fromVersion} of ${quoted(event.type)} failed for event ${quoted(event.id)}, so it was not read. ` +
        'Make the step accept every payload stored with that version; the cause has its error.',
      { cause },
    )
    this.eventName = event.type
    this.eventId = event.id
    this.fromVersion = fromVersion
  }
}

function applySteps(definition: EventDefinition, stored: VersionedEvent, from: number): unknown {
  let payload = stored.payload
  for (let version = from; version < definition.version; version++) {
    try {
      payload = definition.steps.get(version)!(payload)
    } catch (cause) {
      throw new UpcastFailedError(stored, version, cause)
    }
    if (payload instanceof Promise) {
      payload.catch(() => {})
      throw new UpcastFailedError(stored, version, new TypeError('An upcast step must not be asynchronous.'))
    }
  }
  return payload
}
