/** Puts our own words to what the append functions answer. Their SQLSTATEs begin with AC. */
import { AftercommitError, type ErrorCode } from '../errors.ts'
import { classify, OutcomeUnknownError, schemaTooNew, sqlstateOf } from '../postgres/index.ts'
import type { EmitRequest } from './emit.ts'

/** The stream is not where the caller thought. Load it again and decide anew. */
export class VersionConflictError extends AftercommitError {
  readonly aggregateType: string
  readonly aggregateId: string
  readonly expected: number
  readonly found: number

  constructor(aggregate: { type: string; id: string }, expected: number, found: number, cause: unknown) {
    super(
      'VERSION_CONFLICT',
      `Stream ${aggregate.type}/${aggregate.id} is at version ${found}, not ${expected}, so nothing was emitted. ` +
        'Somebody appended in between: load it again and decide anew.',
      { cause },
    )
    this.aggregateType = aggregate.type
    this.aggregateId = aggregate.id
    this.expected = expected
    this.found = found
  }
}

/** An id was chosen that stands for an event with other content. */
export class EventIdTakenError extends AftercommitError {
  readonly eventId: string

  constructor(cause: unknown) {
    const message = cause instanceof Error ? deepestMessage(cause) : String(cause)
    super('EVENT_ID_TAKEN', `${message} Give each event an id of its own; repeat an event with the content it had.`, {
      cause,
    })
    this.eventId = /^The id "(.*)" stands for another event/s.exec(message)?.[1] ?? ''
  }
}

export function explainAppendError(error: unknown, requests: readonly EmitRequest[]): unknown {
  switch (sqlstateOf(error)) {
    case 'AC001':
      return conflict(error, requests)
    case 'AC002':
      return notAStream(error, requests)
    case 'AC003':
      return refused('BAD_EVENT_NAME', error)
    case 'AC004':
      return refused('BAD_EVENT', error)
    case 'AC005':
      return refused('PAYLOAD_TOO_LARGE', error)
    case 'AC016':
      return refused('PAYLOAD_TOO_DEEP', error)
    case 'AC017':
      return new EventIdTakenError(error)
    case 'AC015':
      return schemaTooNew('emitted', error)
    case '42501':
      return new AftercommitError(
        'NOT_ALLOWED',
        'This database role may not append, so nothing was emitted. Run: aftercommit migrate --grant-emit <role>',
        { cause: error },
      )
    case '3F000':
    case '42883':
      return new AftercommitError(
        'SCHEMA_TOO_OLD',
        'The log is not installed in this database, so nothing was emitted. Run: aftercommit migrate',
        { cause: error },
      )
  }
  return classify(error) === 'connection' ? unknownOutcome(error, requests) : error
}

/** The message of the function names the stream and both versions; streams of one batch are told apart by it. */
function conflict(error: unknown, requests: readonly EmitRequest[]): unknown {
  const message = error instanceof Error ? deepestMessage(error) : ''
  const numbers = /is at version (\d+), not (\d+)\./.exec(message)
  const request = requests.find(
    (one) => one.aggregate && message.includes(`Stream ${one.aggregate.type}/${one.aggregate.id} is at`),
  )
  if (!numbers || !request?.aggregate) return error
  return new VersionConflictError(request.aggregate, Number(numbers[2]), Number(numbers[1]), error)
}

/** A limit that the database holds. Its message names the part and the limit, and no value. */
function refused(code: ErrorCode, error: unknown): AftercommitError {
  return new AftercommitError(code, error instanceof Error ? deepestMessage(error) : String(error), { cause: error })
}

function deepestMessage(error: Error): string {
  return error.cause instanceof Error ? deepestMessage(error.cause) : error.message
}

export function explainDeclareError(error: unknown, aggregateType: string): unknown {
  if (sqlstateOf(error) !== 'AC007') return error
  return new AftercommitError(
    'STREAM_HAS_PLAIN_EVENTS',
    `Aggregates of type "${aggregateType}" have plain events already, so they were not declared as streams. ` +
      `Go on from those events with migrate({ adoptStreams: true }), or choose another type.`,
    { cause: error },
  )
}

function notAStream(error: unknown, requests: readonly EmitRequest[]): AftercommitError {
  const request = requests.find((one) => one.expectedVersion !== undefined)
  return new AftercommitError(
    'NOT_A_STREAM',
    `expectedVersion was given for "${request?.type}", but aggregates of type "${request?.aggregate?.type ?? '(none)'}" are ` +
      'not kept as streams, so nothing was emitted. Declare it: defineEvents(…, { streams: [type] }), then migrate.',
    { cause: error },
  )
}

/** The connection was lost under way. Inside a transaction nothing is committed; by itself a statement may have been. */
function unknownOutcome(error: unknown, requests: readonly EmitRequest[]): unknown {
  if (error instanceof OutcomeUnknownError) return error
  const repeatable = requests.every((request) => request.id !== undefined)
  return new AftercommitError(
    'OUTCOME_UNKNOWN',
    `The connection was lost while ${requests.length === 1 ? 'an event was' : `${requests.length} events were`} being appended. ` +
      'Inside a transaction of yours nothing was committed. Outside of one it may have been: ' +
      (repeatable
        ? 'the ids are yours, so emitting them again is safe.'
        : 'emit with ids of your own where repeating must be safe.'),
    { cause: error },
  )
}
