import { classify } from '../postgres/index.ts'
import { type Clock, reconnectDelay } from '../runtime/index.ts'

export interface Patience {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Nobody wants the answer any more. */
  readonly isOver: () => boolean
}

/**
 * Asks until the database answers, with a growing delay, however long it is away. For reads only: they may be repeated.
 * Undefined when it was over before an answer came.
 */
export async function patiently<T>(
  read: () => Promise<T>,
  { clock, signal, isOver }: Patience,
): Promise<T | undefined> {
  for (let failures = 1; ; failures++) {
    try {
      return await read()
    } catch (error) {
      if (isOver()) return undefined
      if (classify(error) === 'permanent') throw error
    }
    await clock.sleep(reconnectDelay(failures), signal).catch(() => {})
    if (isOver()) return undefined
  }
}
