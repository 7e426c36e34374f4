/**
 * The seam to tracing. A span covers one emit, one call of a handler, one attempt, one webhook or one step of a workflow. The
 * emitter's traceparent is kept in the log and *linked* from the handler's span, not continued: a handler may run days
 * later, for many emitters at once. Where nothing is traced, parts get no Telemetry and ask nothing.
 */
export interface Telemetry {
  /** Runs `fn` inside a span that ends with it. A failure marks the span and is thrown on. */
  span<T>(name: string, attributes: Attributes, links: readonly string[], fn: () => T | Promise<T>): Promise<T>
  /** The W3C traceparent of the span we are in, to be kept with an event or sent with a request. */
  currentTraceparent(): string | undefined
}

export type Attributes = Readonly<Record<string, string | number | boolean>>

export const noTelemetry: Telemetry = {
  span: async (_name, _attributes, _links, fn) => fn(),
  currentTraceparent: () => undefined,
}

/**
 * Names of OpenTelemetry's conventions for messaging. They are still changing (system.name was system until lately), so
 * they are written here and nowhere else.
 */
export const MESSAGING = {
  system: 'messaging.system.name',
  operation: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destination: 'messaging.destination.name',
  subscription: 'messaging.destination.subscription.name',
  partition: 'messaging.destination.partition.id',
  consumerGroup: 'messaging.consumer.group.name',
  messageId: 'messaging.message.id',
  correlationId: 'messaging.message.conversation_id',
  batchCount: 'messaging.batch.message_count',
  errorType: 'error.type',
} as const

/** Attributes of a span about events. Ids and names only: never a payload, a user or a key. */
export function messagingAttributes(
  operation: 'emit' | 'process' | 'attempt' | 'execute',
  events: readonly { readonly id?: string | undefined; readonly type: string }[],
  subscription?: string,
): Attributes {
  const [first] = events
  return {
    [MESSAGING.system]: 'aftercommit',
    [MESSAGING.operation]: operation,
    [MESSAGING.operationType]: operation === 'emit' ? 'send' : 'process',
    ...(first && { [MESSAGING.destination]: first.type }),
    ...(subscription !== undefined && { [MESSAGING.subscription]: subscription }),
    ...(events.length === 1 && first?.id !== undefined && { [MESSAGING.messageId]: first.id }),
    ...(events.length > 1 && { [MESSAGING.batchCount]: events.length }),
  }
}

export interface SpanContext {
  traceId: string
  spanId: string
  traceFlags: number
}

/** Undefined for anything that is not a valid traceparent: a broken one from outside costs a link and nothing else. */
export function parseTraceparent(traceparent: string): SpanContext | undefined {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(traceparent) ?? []
  if (!version || !traceId || !spanId || !flags || version === 'ff' || (version === '00' && more)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

export function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string | undefined {
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
  return parseTraceparent(traceparent) && traceparent
}

// Later versions may append fields; the first four keep their meaning.
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
