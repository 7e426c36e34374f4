/** How often people are told: once per observer and span of time, by the clock of the test. */
import type { Clock } from '../runtime/index.ts'

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

export function createAlertCounter(clock: Clock) {
  const counted = new Map<string, { sentMs: number; since: number }>()
  return async (_: unknown, about: string, everySeconds: number): Promise<number | null> => {
    const nowMs = clock.monotonic()
    const last = counted.get(about)
    if (last !== undefined && nowMs - last.sentMs <= everySeconds * 1_000) {
      last.since++
      return null
    }
    counted.set(about, { sentMs: nowMs, since: 0 })
    return (last?.since ?? 0) + 1
  }
}
