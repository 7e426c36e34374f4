/** What asks for work, by itself: a test says what the process is at and what time it is. */
import { onTestFinished } from 'vitest'
import { Claimer } from '../../../src/delivery/claimer.ts'
import { InFlight } from '../../../src/delivery/in-flight.ts'
import { createLanes, type Lanes } from '../../../src/delivery/lanes.ts'
import type { Lease } from '../../../src/delivery/lease.ts'
import type { Database } from '../../../src/postgres/index.ts'
import { systemClock } from '../../../src/runtime/index.ts'
import { NAMES } from './by-hand.ts'

export interface OpenClaimer {
  readonly claimer: Claimer
  readonly lease: { worker: string; hasGone: boolean }
  readonly inFlight: InFlight
  pass(ms: number): void
}

/** As the worker `by hand`, which must be there. */
export function openClaimer(
  database: Database,
  { lanes = createLanes(database.control) }: { lanes?: Lanes } = {},
): OpenClaimer {
  let now = 0
  const lease = { worker: 'by hand', hasGone: false }
  const clock = { ...systemClock, monotonic: () => now }
  const inFlight = new InFlight({ clock, most: 50 })
  const claimer = new Claimer({
    ...{ database, inFlight, clock },
    lanes,
    lease: lease as unknown as Lease,
    willHear: () => true,
    wake: () => {},
  })
  claimer.names = NAMES
  onTestFinished(() => claimer.close())
  return {
    ...{ claimer, lease, inFlight },
    pass(ms) {
      now += ms
    },
  }
}
