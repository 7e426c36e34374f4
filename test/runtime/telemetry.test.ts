import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import {
  MESSAGING,
  noTelemetry,
  type OpenTelemetryApi,
  openTelemetry,
  parseTraceparent,
} from '../../src/runtime/index.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const LINK = `00-${TRACE}-b7ad6b7169203331-01`

/**
 * A hand-made object of the same shape as the module @opentelemetry/api. It shows what the adapter asks of the API;
 * spans.pg.test.ts plays the same with the real SDK.
 */
function fakeApi() {
  const spans: Record<string, unknown>[] = []
  const active = new AsyncLocalStorage<ReturnType<typeof createSpan>>()
  const createSpan = (record: Record<string, unknown>, spanId: string) => ({
    spanContext: () => ({ traceId: TRACE, spanId, traceFlags: 1 }),
    setAttribute: (name: string, value: string) => Object.assign(record, { [name]: value }),
    setStatus: (status: object) => Object.assign(record, { status }),
    recordException: (exception: object) => {
      Object.assign(record, { exception })
    },
    end: () => {
      Object.assign(record, { ended: Number(record.ended ?? 0) + 1 })
    },
  })
  const api: OpenTelemetryApi = {
    trace: {
      getTracer: (tracer) => ({
        startActiveSpan(name, options, fn) {
          const record: Record<string, unknown> = { tracer, name, ...options }
          spans.push(record)
          const span = createSpan(record, `000000000000000${spans.length}`)
          return active.run(span, () => fn(span))
        },
      }),
      getActiveSpan: () => active.getStore(),
    },
  }
  return { api, spans }
}

describe('openTelemetry', () => {
  test('a handler runs in a consumer span that links to the emitter and ends once', async () => {
    const { api, spans } = fakeApi()
    const attributes = { [MESSAGING.operationType]: 'process', [MESSAGING.messageId]: 'event-1' }
    const result = await openTelemetry(api).span('process order.placed', attributes, [LINK], async () => 7)
    expect(result).toBe(7)
    expect(spans).toEqual([
      {
        tracer: 'aftercommit',
        name: 'process order.placed',
        kind: 4,
        attributes: { 'messaging.operation.type': 'process', 'messaging.message.id': 'event-1' },
        links: [{ context: { traceId: TRACE, spanId: 'b7ad6b7169203331', traceFlags: 1 } }],
        ended: 1,
      },
    ])
  })

  test.each([
    ['send', 3],
    ['create', 3],
    ['receive', 4],
    ['settle', 0],
  ])('the operation %s makes a span of kind %d', async (operation, kind) => {
    const { api, spans } = fakeApi()
    await openTelemetry(api).span('x', { [MESSAGING.operationType]: operation }, [], () => {})
    expect(spans[0]).toMatchObject({ kind })
  })

  test('a failure marks the span, masked, ends it and is thrown on', async () => {
    const { api, spans } = fakeApi()
    const error = Object.assign(new Error('cannot reach postgres://app:hunter2@db/x'), { code: 'ECONNREFUSED' })
    const run = openTelemetry(api).span('x', {}, [], () => {
      throw error
    })
    await expect(run).rejects.toBe(error)
    expect(spans[0]).toMatchObject({
      status: { code: 2, message: 'ECONNREFUSED' },
      exception: { name: 'Error', message: 'cannot reach postgres://app:***@db/x' },
      'error.type': 'ECONNREFUSED',
      ended: 1,
    })
    expect(JSON.stringify(spans)).not.toContain('hunter2')
  })

  test('a broken traceparent costs its link and nothing else', async () => {
    const { api, spans } = fakeApi()
    await openTelemetry(api).span('x', {}, ['nonsense', LINK], () => {})
    expect(spans[0]?.links).toHaveLength(1)
  })

  test('the current traceparent is that of the innermost span, and absent outside', async () => {
    const { api } = fakeApi()
    const telemetry = openTelemetry(api)
    expect(telemetry.currentTraceparent()).toBeUndefined()
    await telemetry.span('x', {}, [], async () => {
      await new Promise(setImmediate)
      expect(telemetry.currentTraceparent()).toBe(`00-${TRACE}-0000000000000001-01`)
    })
  })
})

test('without telemetry the work is done all the same, and its failure is thrown', async () => {
  await expect(noTelemetry.span('x', {}, [], () => 7)).resolves.toBe(7)
  const failing = noTelemetry.span('x', {}, [], () => {
    throw new Error('broken')
  })
  await expect(failing).rejects.toThrow('broken')
  expect(noTelemetry.currentTraceparent()).toBeUndefined()
})

describe('parseTraceparent', () => {
  test('reads its parts, also those of a later version with more fields', () => {
    const parts = { traceId: TRACE, spanId: 'b7ad6b7169203331', traceFlags: 1 }
    expect(parseTraceparent(LINK)).toEqual(parts)
    expect(parseTraceparent(`01${LINK.slice(2)}-more`)).toEqual(parts)
  })

  test.each([
    '',
    'nonsense',
    LINK.toUpperCase(),
    `${LINK}-more`,
    `ff${LINK.slice(2)}`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-b7ad6b7169203331`,
  ])('%j is not one', (text) => {
    expect(parseTraceparent(text)).toBeUndefined()
  })
})
