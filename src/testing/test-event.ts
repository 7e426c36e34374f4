/** Events for tests of functions that take one: every field has a value, and the test gives the ones it is about. */
import {
  AftercommitEvent,
  type EventFields,
  type MetadataInput,
  metadataFromStored,
  metadataToStored,
  newEventId,
} from '../events/index.ts'

export interface TestEventInput<Payload = unknown>
  extends Partial<Omit<EventFields<string, Payload>, 'type' | 'aggregateType' | 'aggregateId' | 'metadata'>> {
  readonly aggregate?: { readonly type: string; readonly id: string } | undefined
  readonly metadata?: MetadataInput | undefined
}

const TIME = new Date('2026-01-01T00:00:00Z')

/** An event as a handler would get it. */
export function testEvent<Type extends string, Payload = unknown>(
  type: Type,
  input: TestEventInput<Payload> = {},
): AftercommitEvent<Type, Payload> {
  const { aggregate, metadata, ...fields } = input
  const id = fields.id ?? newEventId()
  return new AftercommitEvent<Type, Payload>({
    position: 1n,
    version: null,
    payload: null as Payload,
    changes: null,
    previous: null,
    tenant: null,
    occurredAt: TIME,
    recordedAt: TIME,
    ...fields,
    id,
    type,
    aggregateType: aggregate?.type ?? null,
    aggregateId: aggregate?.id ?? null,
    metadata: metadataFromStored(metadataToStored({ correlationId: id, ...metadata })),
  })
}
