import { type Clock, reconnectDelay } from '../runtime/index.ts'

export interface UntilDone {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly onFailure: (error: unknown, delayMs: number) => void
}

/** Repeats the work until it succeeds, with a growing delay. False when the signal ended it first. */
export async function untilDone(
  work: () => Promise<unknown>,
  { clock, signal, onFailure }: UntilDone,
): Promise<boolean> {
  for (let failures = 1; ; failures++) {
    try {
      await work()
      return true
    } catch (error) {
      if (signal.aborted) return false
      const delayMs = reconnectDelay(failures)
      onFailure(error, delayMs)
      await clock.sleep(delayMs, signal).catch(() => {})
    }
    if (signal.aborted) return false
  }
}
