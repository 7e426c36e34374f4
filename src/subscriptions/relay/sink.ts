/** The port to a bus: what a relay asks of NATS, Redis, Kafka or whatever carries events out of the database. */
import { AftercommitError } from '../../errors.ts'
import { stringifyJson, toCloudEvent, Undecodable } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import { RetryAfter } from '../words.ts'

/**
 * Who calls: one relay, in one process of the cluster at a time, one call after the other and never two at once; the
 * order of the messages and of the calls is the order of the log.
 *
 * What it must do: `publish` resolves only when every message of the call was accepted for good, so that no crash of
 * this process loses one. It rejects otherwise; then none or some were accepted, and all of them will be sent again, with
 * the same ids and in the same order, after a pause. It keeps no queue of its own: what it has not accepted, the log has.
 *
 * How to fail: `SinkUnavailable`, or any error of the network, says that no message could have been accepted now; the
 * relay sends the same messages again, however long it takes. `RetryAfter` says the same and when to come back. `GiveUp`
 * says that a message is refused for ever. After any other error a batch is sent in halves until the message that fails is
 * alone; that message is tried by the policy and then becomes a dead letter.
 */
export interface Sink {
  /** For logs and errors. */
  readonly name: string
  readonly features: SinkFeatures
  /** `signal` fires when the time for the call is up or the lease was lost: the call should end soon. */
  publish(messages: readonly SinkMessage[], context: { readonly signal: AbortSignal }): Promise<void>
  /** Called once, when the instance stops and no call is under way. */
  close?(): Promise<void> | void
}

export interface SinkFeatures {
  /** Readers see messages in the order they were accepted. */
  readonly ordered: boolean
  /** What was accepted outlives a restart of the bus. */
  readonly persistent: boolean
  /** An id that was accepted before is accepted again and not shown twice. */
  readonly deduplicating: boolean
}

export interface SinkMessage {
  /** The id of the event: the same whenever it is sent. */
  readonly id: string
  readonly type: string
  /** What order goes by. */
  readonly key: string
  readonly position: bigint
  /** The whole event as CloudEvents 1.0 in JSON. */
  readonly cloudEvent: string
  /** Printable ASCII, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** The bus is away, read-only, full or busy: not the fault of any message. */
export class SinkUnavailable extends AftercommitError {
  constructor(reason: string, options?: { cause?: unknown }) {
    super('SINK_UNAVAILABLE', reason, options)
  }
}

export function toMessage(event: AnyEvent, key: string, source: string): SinkMessage {
  const { id, type, position } = event
  if (event.payload instanceof Undecodable) {
    throw new AftercommitError(
      'UNDECODABLE',
      `The stored payload of event "${id}" cannot be read, so it was not published.`,
    )
  }
  const cloudEvent = stringifyJson(toCloudEvent(event, { source }), NO_LIMITS)
  return { id, type, key, position, cloudEvent, headers: headersOf(event) }
}

/** Limits were kept when the event was emitted; an event of a more generous time must get out as well. */
const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'event' }

function headersOf({ metadata, tenant }: AnyEvent): Record<string, string> {
  const wanted = {
    'content-type': 'application/cloudevents+json; charset=utf-8',
    traceparent: metadata.traceparent,
    'correlation-id': metadata.correlationId,
    tenant,
  }
  // Whatever a header cannot hold is in the body anyway; a line break in it would be another header.
  return Object.fromEntries(
    Object.entries(wanted).filter((header): header is [string, string] => /^[ -~]{1,1000}$/.test(header[1] ?? '')),
  )
}

/** Whether the bus takes no message now, as far as the error tells. Libraries wrap: causes are looked at too. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof RetryAfter) return true
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    if (cause instanceof SinkUnavailable || NETWORK.has((cause as NodeJS.ErrnoException).code ?? '')) return true
  }
  return false
}

const NETWORK: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
])
