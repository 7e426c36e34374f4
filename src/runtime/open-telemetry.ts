import { summarizeError } from './redact.ts'
import {
  type Attributes,
  MESSAGING,
  parseTraceparent,
  type SpanContext,
  type Telemetry,
  toTraceparent,
} from './telemetry.ts'

/**
 * What is used of the module `@opentelemetry/api`. It is passed in rather than imported: the API keeps its state in the
 * module, so it must be the very copy the application has set up, and who traces nothing installs nothing.
 */
export interface OpenTelemetryApi {
  trace: {
    getTracer(name: string): OpenTelemetryTracer
    getActiveSpan(): OpenTelemetrySpan | undefined
  }
}

export interface OpenTelemetryTracer {
  startActiveSpan<T>(name: string, options: OpenTelemetrySpanOptions, fn: (span: OpenTelemetrySpan) => T): T
}

export interface OpenTelemetrySpanOptions {
  kind: number
  attributes: Record<string, string | number | boolean>
  links: { context: SpanContext }[]
}

export interface OpenTelemetrySpan {
  spanContext(): SpanContext
  setAttribute(name: string, value: string): unknown
  setStatus(status: { code: number; message: string }): unknown
  recordException(exception: { name: string; message: string }): void
  end(): void
}

/** `openTelemetry(await import('@opentelemetry/api'))` */
export function openTelemetry(api: OpenTelemetryApi): Telemetry {
  return {
    span(name, attributes, links, fn) {
      const options = { kind: kindOf(attributes), attributes: { ...attributes }, links: links.flatMap(toLink) }
      return api.trace.getTracer('aftercommit').startActiveSpan(name, options, async (span) => {
        try {
          return await fn()
        } catch (error) {
          markFailed(span, error)
          throw error
        } finally {
          span.end()
        }
      })
    },
    currentTraceparent() {
      const span = api.trace.getActiveSpan()
      return span && toTraceparent(span.spanContext())
    },
  }
}

// Values of the API's SpanKind and SpanStatusCode, which are part of its stable interface.
const INTERNAL = 0
const CLIENT = 2
const PRODUCER = 3
const CONSUMER = 4
const STATUS_ERROR = 2

function kindOf(attributes: Attributes): number {
  if ('http.request.method' in attributes) return CLIENT
  const operation = attributes[MESSAGING.operationType]
  if (operation === 'create' || operation === 'send') return PRODUCER
  return operation === 'receive' || operation === 'process' ? CONSUMER : INTERNAL
}

function toLink(traceparent: string): { context: SpanContext }[] {
  const context = parseTraceparent(traceparent)
  return context ? [{ context }] : []
}

function markFailed(span: OpenTelemetrySpan, error: unknown): void {
  const { name, code, message } = summarizeError(error)
  span.setAttribute(MESSAGING.errorType, code ?? name)
  span.recordException({ name, message })
  span.setStatus({ code: STATUS_ERROR, message: code ?? name })
}
