import fc from 'fast-check'
import { AftercommitEvent, type EventMetadata, ExactNumber, metadataFromStored } from '../../src/events/index.ts'

/** Events with everything that makes a round trip hard: exact numbers, odd keys, odd text, far times. */
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((value) => !value.includes('\0'))
const exact = fc.oneof(
  fc.bigInt({ min: 10n ** 20n + 1n, max: 10n ** 30n }).map((value) => (value % 10n === 0n ? value + 1n : value)),
  fc.constantFrom('0.100000000000000000000000000001', '1e400').map((number) => new ExactNumber(number)),
)
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.oneof(
      fc.constant(null),
      fc.boolean(),
      text,
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      exact,
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'a b')), tie('value'), {
    maxKeys: 4,
  }),
}))
export const payloads: fc.Arbitrary<unknown> = json.value
const object = json.object as fc.Arbitrary<Record<string, unknown>>
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })

const freeMetadata = fc.dictionary(
  text.map((key) => `x ${key}`),
  json.value,
  { maxKeys: 3 },
)

export const metadata: fc.Arbitrary<EventMetadata> = fc
  .record({
    correlation_id: orNull(text),
    causation_id: orNull(text),
    user_id: orNull(text),
    traceparent: orNull(fc.constant('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')),
    schema_version: fc.integer({ min: 1, max: 9 }),
    depth: fc.integer({ min: 0, max: 32 }),
  })
  .chain((known) => freeMetadata.map((free) => metadataFromStored({ ...free, ...known })))

export const events: fc.Arbitrary<AftercommitEvent> = fc
  .record({
    id: text,
    type: fc.constantFrom('order.placed', 'order.placed.v2', 'user_created'),
    position: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    aggregate: orNull(fc.record({ type: text, id: text })),
    version: orNull(fc.integer({ min: 1, max: 2 ** 40 })),
    payload: payloads,
    changes: orNull(fc.dictionary(text, fc.record({ old: json.value, new: json.value }), { maxKeys: 3 })),
    previous: orNull(object),
    tenant: orNull(text),
    metadata,
    occurredAt: fc.date({ noInvalidDate: true }),
    recordedAt: fc.date({ noInvalidDate: true }),
  })
  .map(
    ({ aggregate, ...fields }) =>
      new AftercommitEvent({ ...fields, aggregateType: aggregate?.type ?? null, aggregateId: aggregate?.id ?? null }),
  )
