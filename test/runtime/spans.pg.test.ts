/** Spans of a whole instance, as the real OpenTelemetry SDK exports them. */
import * as api from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openTelemetry } from '../../src/index.ts'
import { parseTraceparent } from '../../src/runtime/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'
import { fulfilment } from '../workflows/support/fulfilment.ts'
import { rulesFile } from './support/rules-file.ts'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
beforeAll(() => provider.register())
afterAll(() => provider.shutdown())
beforeEach(() => exporter.reset())

const { SpanKind, SpanStatusCode } = api
const telemetry = openTelemetry(api)

function span(name: string): Promise<ReadableSpan> {
  return eventually(() => exporter.getFinishedSpans().find((one) => one.name === name))
}

const linksOf = ({ links }: ReadableSpan) => links.map(({ context }) => context.spanId)

test('an emit is a producer span, and the span of the handler links to it and does not continue it', async () => {
  const { ac } = await openSubscriptions({ telemetry })
  ac.subscribe({
    id: 'lamps',
    on: ['lamp.lit'],
    handle: () => ac.transaction((tx) => tx.emit('lamp.counted', { payload: { secret: 'canary' } })),
  })
  await ac.start()
  const tracer = api.trace.getTracer('test')
  await tracer.startActiveSpan('request', async (request) => {
    await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'a', payload: { secret: 'canary' } }))
    request.end()
  })
  const [request, emit, handler, inner] = [
    await span('request'),
    await span('emit lamp.lit'),
    await span('process lamps'),
    await span('emit lamp.counted'),
  ]
  expect(emit).toMatchObject({
    kind: SpanKind.PRODUCER,
    parentSpanContext: { spanId: request.spanContext().spanId },
    attributes: {
      'messaging.system.name': 'aftercommit',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'lamp.lit',
      'messaging.message.id': 'a',
    },
  })
  expect(handler).toMatchObject({
    kind: SpanKind.CONSUMER,
    parentSpanContext: undefined,
    attributes: { 'messaging.destination.subscription.name': 'lamps', 'messaging.message.id': 'a' },
  })
  expect(linksOf(handler)).toEqual([emit.spanContext().spanId])
  expect(inner.parentSpanContext?.spanId).toBe(handler.spanContext().spanId)
  const kept = parseTraceparent((await ac.log.get('a'))!.metadata.traceparent!)
  expect(kept?.spanId).toBe(emit.spanContext().spanId)
  expect(
    JSON.stringify(exporter.getFinishedSpans().map(({ attributes, events }) => [attributes, events])),
  ).not.toContain('canary')
})

test('a batch links to every emitter, and a handler that fails marks its span', async () => {
  const { ac } = await openSubscriptions({ telemetry })
  for (const id of ['a', 'b']) await ac.transaction((tx) => tx.emit('lamp.lit', { id, payload: {} }))
  ac.subscribe({ id: 'batch', handleBatch: () => {} })
  ac.subscribe({
    id: 'broken',
    retry: { maxAttempts: 1 },
    handle: () => {
      throw Object.assign(new Error('no lamp at postgres://app:hunter2@db/x'), { code: 'NO_LAMP' })
    },
  })
  await ac.drain()
  const emits = exporter.getFinishedSpans().filter(({ name }) => name === 'emit lamp.lit')
  const batch = await span('process batch')
  expect(linksOf(batch)).toEqual(emits.map((emit) => emit.spanContext().spanId))
  expect(batch.attributes['messaging.batch.message_count']).toBe(2)
  const broken = await span('process broken')
  expect(broken.status).toMatchObject({ code: SpanStatusCode.ERROR, message: 'NO_LAMP' })
  expect(JSON.stringify(broken.events)).not.toContain('hunter2')
})

test('an attempt of an action links to the emit, its webhook is a child, and the receiver continues the trace', async () => {
  const receiver = await httpReceiver((response, _, times) => response.writeHead(times === 1 ? 503 : 200).end())
  const { ac } = await openSubscriptions({ telemetry })
  await ac.observers.loadFile(
    rulesFile(`[network]
      allow = ["127.0.0.1"]
      [observers.erp]
      on = "lamp.lit"
      actions = [{ type = "webhook", name = "call", url = "${receiver.url}/hook?token=canary-token-of-an-address" }]
      retry = { initial_delay = "10ms" }`),
  )
  await ac.start()
  await ac.emitNow('lamp.lit', { id: 'a', payload: {} })
  const emit = await span('emit lamp.lit')
  const attempts = await eventually(() => {
    const found = exporter.getFinishedSpans().filter(({ name }) => name === 'attempt erp/call')
    return found.length === 2 && found
  })
  for (const attempt of attempts) expect(linksOf(attempt)).toEqual([emit.spanContext().spanId])
  expect(attempts.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET])
  const calls = exporter.getFinishedSpans().filter(({ kind }) => kind === SpanKind.CLIENT)
  expect(calls.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
    attempts.map((attempt) => attempt.spanContext().spanId),
  )
  expect(calls[0]!.attributes).toMatchObject({ 'http.request.method': 'POST' })
  expect(JSON.stringify(calls.map(({ attributes, name }) => [attributes, name]))).not.toContain('canary')
  expect(receiver.calls.map(({ headers }) => parseTraceparent(String(headers.traceparent))?.spanId)).toEqual(
    calls.map((call) => call.spanContext().spanId),
  )
})

test('a step of a workflow is a span, and the attempt of its effect links to it', async () => {
  const { ac } = await openSubscriptions({ telemetry })
  ac.workflows.register(fulfilment, {
    effects: { charge: ({ orderId }) => ({ type: 'paid', orderId, by: 'card' }), notify: () => {} },
  })
  await ac.start()
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: '42', total: 90 })
  const steps = await eventually(() => {
    const found = exporter.getFinishedSpans().filter(({ name }) => name === 'execute fulfilment')
    return found.length === 2 && found
  })
  const effect = await span('attempt fulfilment/charge')
  expect(linksOf(effect)).toEqual([steps[0]!.spanContext().spanId])
})
