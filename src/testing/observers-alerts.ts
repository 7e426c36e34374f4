/** How often people are told: once per observer and span of time, by the clock of the test. */
import type { Delivering } from '../delivery/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { LeftAlert } from '../subscriptions/index.ts'

/** An alert that would have been sent. */
export interface SentAlert {
  /** `slack` or `email`. */
  readonly type: string
  /** The observer. */
  readonly about: string
  /** How many failures it stands for. */
  readonly count: number
  /** What would have been sent, rendered. */
  readonly content: Readonly<Record<string, unknown>>
}

/** In place of the database: counts failures and adds one delivery per channel when an alert is due. */
export function createAlertRaiser(clock: Clock, delivering: Pick<Delivering, 'add'>) {
  const counted = new Map<string, { sentMs: number; since: number }>()
  return async (db: Queryable, { about, text, channels, everySeconds }: LeftAlert): Promise<void> => {
    const nowMs = clock.monotonic()
    const last = counted.get(about)
    if (last !== undefined && nowMs - last.sentMs <= everySeconds * 1_000) {
      last.since++
      return
    }
    counted.set(about, { sentMs: nowMs, since: 0 })
    const payload = { about, text, count: (last?.since ?? 0) + 1, at: clock.now().toISOString() }
    await delivering.add(
      db,
      channels.map((name) => ({ kind: 'action', name, owner: name, payload })),
    )
  }
}
