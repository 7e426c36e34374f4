import { metadataFromStored } from '../../../src/events/index.ts'
import { AftercommitEvent } from '../../../src/index.ts'
import type { AnyEvent } from '../../../src/log/index.ts'

/** An event of which only the place in the order matters. */
export function eventAt(position: bigint): AnyEvent {
  return new AftercommitEvent({
    id: `event-${position}`,
    type: 'lamp.lit',
    position,
    aggregateType: null,
    aggregateId: null,
    version: null,
    payload: {},
    changes: null,
    previous: null,
    tenant: null,
    metadata: metadataFromStored({}),
    occurredAt: new Date(0),
    recordedAt: new Date(0),
  })
}
