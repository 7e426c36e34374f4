/** A relay's host without a database: it writes down what the relay does. */

import type { RelayHost, RelayPublisher } from '../../src/hooks/index.ts'
import type { AnyEvent } from '../../src/log/index.ts'
import { createHealth, createRegistry, systemClock } from '../../src/runtime/index.ts'
import { collectingLogger } from '../support/logger.ts'

export interface FakeHost extends RelayHost {
  readonly lines: readonly string[]
  nudges: number
  position: bigint
  publisher: RelayPublisher | undefined
}

export function fakeHost(process: string): FakeHost {
  const { logger, lines } = collectingLogger()
  const host: FakeHost = {
    ...{ process, schema: 'shop', clock: systemClock, logger, lines },
    metrics: createRegistry(),
    health: createHealth(),
    nudges: 0,
    position: 0n,
    publisher: undefined,
    place: () => ({ epoch: 1, position: host.position }),
    isRung: () => true,
    nudge: () => void host.nudges++,
    publishFrom(publisher) {
      host.publisher = publisher
    },
  }
  return host
}

/** What a relay looks at in an event. */
export function event(position: number, id = `e${position}`): AnyEvent {
  const place = { position: BigInt(position), aggregateType: null, aggregateId: null, version: null, tenant: null }
  return { id, type: 'lamp.lit', kind: 'custom', ...place } as AnyEvent
}
