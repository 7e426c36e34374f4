/** What is shown of deliveries to a scraper. Counting walks every row, so it is done once for several scrapes if it is slow. */
import type { Queryable } from '../postgres/index.ts'
import type { Clock, Registry } from '../runtime/index.ts'
import { countAll } from './inspect-counts.ts'
import { selectVacuum } from './inspect-vacuum.ts'
import { selectCircuits } from './inspect-work.ts'

export function exposeDeliveries(metrics: Registry, db: Queryable, clock: Clock): void {
  const counts = sparingly(clock, () => countAll(db))
  const circuits = sparingly(clock, () => selectCircuits(db))
  const vacuum = sparingly(clock, () => selectVacuum(db))
  metrics
    .gauge({ name: 'aftercommit_deliveries', help: 'Deliveries that are not done, by state.', labels: ['state'] })
    .collect(async () =>
      Object.entries((await counts()).states).map(([state, value]) => ({ labels: { state }, value })),
    )
  metrics
    .gauge({ name: 'aftercommit_timers_due', help: 'Timers whose time has come and that nobody has begun.' })
    .collect(async () => [{ labels: {}, value: (await counts()).timersDue }])
  metrics
    .gauge({
      name: 'aftercommit_dead_tuples',
      help: 'Rows of deliveries that are done with and not removed yet.',
    })
    .collect(async () => [{ labels: {}, value: (await vacuum()).deadTuples }])
  metrics
    .gauge({
      name: 'aftercommit_oldest_snapshot_age_seconds',
      help: 'For how long a transaction has kept rows that are done with from being removed; 0 when none does.',
    })
    .collect(async () => [{ labels: {}, value: ((await vacuum()).oldest?.ageMs ?? 0) / 1_000 }])
  metrics
    .gauge({
      name: 'aftercommit_destination_open',
      help: '1 while the circuit of a destination is open, else 0.',
      labels: ['destination'],
    })
    .collect(async () =>
      (await circuits()).map(({ destination, open }) => ({ labels: { destination }, value: open ? 1 : 0 })),
    )
}

const LEAST_MS = 1_000
/** A look that took so long is not repeated for so many times as long: at most a twentieth of the time is spent looking. */
const REST_FACTOR = 19

/** What was seen last, looked at again at most once a second, and more seldom the longer a look takes. */
export function sparingly<T>(clock: Clock, look: () => Promise<T>): () => Promise<T> {
  let seen: Promise<T> | undefined
  let dueMs = 0
  return () => {
    if (seen !== undefined && clock.monotonic() < dueMs) return seen
    const began = clock.monotonic()
    dueMs = Number.POSITIVE_INFINITY
    const looked = look()
    seen = looked
    const ended = () => {
      const tookMs = clock.monotonic() - began
      dueMs = clock.monotonic() + Math.max(LEAST_MS - tookMs, tookMs * REST_FACTOR)
    }
    looked.then(ended, ended)
    return looked
  }
}
