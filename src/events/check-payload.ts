import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from './define-events.ts'
import type { AftercommitEvent } from './event.ts'
import { UnknownEventError } from './event-name.ts'
import type { EventName, Payload } from './event-types.ts'
import { formatPath } from './json-error.ts'
import { quoted } from './quoted.ts'
import type { SchemaIssue, SchemaOutput, SchemaResult, StandardSchema } from './standard-schema.ts'
import { toWellFormed } from './well-formed.ts'

/**
 * Checks a payload against the schema of its event and gives the schema's output, which is what gets stored. The
 * answer is a promise only when the schema works asynchronously.
 */
export function checkPayload<D extends EventDefinitions, Name extends EventName<D>>(
  definitions: D,
  type: Name,
  payload: unknown,
): Payload<D, Name> | Promise<Payload<D, Name>>
export function checkPayload(definitions: EventDefinitions, type: string, payload: unknown): unknown {
  const definition = definitions.get(type)
  if (definition === undefined) throw new UnknownEventError(type, definitions.names)
  const result = validate(definition.schema, type, payload)
  return result instanceof Promise ? result.then((late) => outputOf(late, type)) : outputOf(result, type)
}

/** Reads the payload of any event through a schema of your own: `const order = payloadAs(Order)(event)`. */
export function payloadAs<S extends StandardSchema>(schema: S): (event: AftercommitEvent) => SchemaOutput<S> {
  return (event) => {
    const result = validate(schema, event.type, event.payload)
    if (result instanceof Promise) {
      // The answer is not waited for; a late refusal must not become an unhandled rejection.
      result.catch(() => {})
      throw new AftercommitError(
        'INVALID_PAYLOAD',
        `The schema given to payloadAs works asynchronously, so ${quoted(event.type)} was not read. Make it synchronous.`,
      )
    }
    return outputOf(result, event.type)
  }
}

export interface PayloadIssue {
  /** Such as `payload.items[3].name`. */
  readonly path: string
  readonly message: string
}

export class InvalidPayloadError extends AftercommitError {
  readonly eventName: string
  /** At most 20, each message at most 200 characters. */
  readonly issues: readonly PayloadIssue[]

  constructor(eventName: string, issues: readonly SchemaIssue[]) {
    const kept = issues.slice(0, MAX_ISSUES).map(toIssue)
    const shown = kept.slice(0, 3).map((issue) => `${issue.path}: ${issue.message}`)
    if (issues.length > 3) shown.push(`and ${issues.length - 3} more`)
    super(
      'INVALID_PAYLOAD',
      `The payload does not fit the schema of ${quoted(eventName)}, so it is refused. ${shown.join('; ')}`,
    )
    this.eventName = eventName
    this.issues = kept
  }
}

const MAX_ISSUES = 20
const MAX_MESSAGE_LENGTH = 200

function validate(schema: StandardSchema, type: string, payload: unknown) {
  try {
    return schema['~standard'].validate(payload)
  } catch (cause) {
    throw new AftercommitError(
      'INVALID_PAYLOAD',
      `The schema of ${quoted(type)} threw instead of answering, so the payload is refused. The cause has its error.`,
      { cause },
    )
  }
}

function outputOf<Output>(result: SchemaResult<Output>, type: string): Output {
  if (result.issues) throw new InvalidPayloadError(type, result.issues)
  return result.value
}

/** Path and message only, on one line and of bounded length: messages come from a library and may quote anything. */
function toIssue(issue: SchemaIssue): PayloadIssue {
  const steps = (issue.path ?? []).map((step) => toStep(typeof step === 'object' ? step.key : step))
  const message = toWellFormed(String(issue.message)).replace(CONTROL, ' ')
  const cut = toWellFormed(message.slice(0, MAX_MESSAGE_LENGTH - 1))
  return { path: formatPath('payload', steps), message: message.length > MAX_MESSAGE_LENGTH ? `${cut}…` : message }
}

function toStep(key: PropertyKey): string | number {
  return typeof key === 'symbol' ? String(key) : key
}

const CONTROL = /[\u0000-\u001f\u007f]+/g
