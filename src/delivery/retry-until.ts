/** Repeats what must be known before anything follows: until there is an answer, or until nobody waits for one. */
import { classify } from '../postgres/index.ts'
import { type Clock, reconnectDelay } from '../runtime/index.ts'

/** A migration under way may refuse for a moment what is right. */
const MOST_REFUSALS = 6

export async function retryUntil<T>(
  clock: Clock,
  signal: () => AbortSignal,
  attempt: () => T | Promise<T>,
): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await attempt()
    } catch (error) {
      const isHopeless = n >= MOST_REFUSALS && classify(error) === 'permanent'
      if (signal().aborted || isHopeless) throw error
      await clock.sleep(reconnectDelay(n), signal())
    }
  }
}
