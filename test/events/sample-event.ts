import { AftercommitEvent, type EventFields, metadataFromStored } from '../../src/events/index.ts'

/** An event with something in every field that must not be printed; give the fields a test is about. */
export function sampleEvent(fields: Partial<EventFields> = {}): AftercommitEvent {
  return new AftercommitEvent({
    id: '0198c2f4-3e12-7abc-9def-1e2345678901',
    type: 'order.placed',
    position: 42n,
    aggregateType: 'order',
    aggregateId: '7',
    version: null,
    payload: { total: 90, note: 'secret-payload' },
    changes: { status: { old: 'secret-old', new: 'secret-new' } },
    previous: { status: 'secret-previous' },
    tenant: null,
    metadata: metadataFromStored({
      correlation_id: 'corr-1',
      user_id: 'secret-user',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      region: 'secret-region',
    }),
    occurredAt: new Date('2026-03-01T12:00:00.000Z'),
    recordedAt: new Date('2026-03-01T12:00:00.250Z'),
    ...fields,
  })
}
