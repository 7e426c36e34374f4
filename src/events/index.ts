/**
 * What an event is: its definition, name, patterns, envelope and JSON. Everything here is pure: no database, no clock,
 * no I/O. The stage promises that what passes `checkPayload` and `stringifyJson` can be stored, and that what is read
 * back is the same value, digit for digit.
 *
 * Start reading with define-events.ts (the catalogue) and event.ts (the envelope). The JSON reader and writer are
 * json-parse.ts and json-write.ts; event-types.ts is what the compiler knows.
 */
export { changedFrom, changedTo, fieldChanged } from './changes.ts'
export { refuseMisspelt } from './check-names.ts'
export { checkPayload, InvalidPayloadError, type PayloadIssue, payloadAs } from './check-payload.ts'
export { closest } from './closest.ts'
export { type CloudEvent, defaultSource, fromCloudEvent, type ReceivedEvent, toCloudEvent } from './cloud-events.ts'
export {
  type DefineEventsOptions,
  type DefinitionProblem,
  defineEvents,
  type EventDefinition,
  EventDefinitionError,
  type EventDefinitions,
  type EventSchemas,
  type UpcastStep,
  type VersionedSchema,
} from './define-events.ts'
export {
  AftercommitEvent,
  aggregateKey,
  type Change,
  type Changes,
  type EventFields,
  type EventLogForm,
  eventSerializer,
} from './event.ts'
export { baseName, checkEventName, type EventKind, isEventName, kindOf, UnknownEventError } from './event-name.ts'
export type { EventName, EventOf, Payload, PayloadInput } from './event-types.ts'
export { type Decimal, ExactNumber, parseDecimal } from './exact-number.ts'
export { checkAggregate, checkEventId, checkTenant, newEventId } from './identifiers.ts'
export { JsonError, type JsonErrorCode } from './json-error.ts'
export { parseJson } from './json-parse.ts'
export { type JsonLimits, stringifyJson } from './json-write.ts'
export {
  type EventMetadata,
  type MetadataInput,
  metadataFromStored,
  metadataToStored,
  type StoredMetadata,
} from './metadata.ts'
export { boundsOf, compilePatterns, patternsToSql, type TypeBounds } from './pattern.ts'
export { readable, toEventJson, toPlain } from './plain-json.ts'
export type { SchemaInput, SchemaIssue, SchemaOutput, SchemaResult, StandardSchema } from './standard-schema.ts'
export {
  isUndecodable,
  ownCopy,
  StoredEvent,
  type StoredFields,
  toStoredEvent,
  whyUndecodable,
} from './stored-event.ts'
export { Undecodable } from './undecodable.ts'
export { SchemaVersionTooNewError, UpcastFailedError, upcast, type VersionedEvent } from './upcast.ts'
export { fromWire, toWire, type WireEvent } from './wire.ts'
