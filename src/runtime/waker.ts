import type { Clock } from './clock.ts'

/**
 * A wait that can be cut short. Wakes coalesce (ten of them are one) and are never lost: a wake that comes while nobody
 * waits makes the next wait return at once. That closes the gap between "looked, found nothing" and "went to sleep".
 */
export interface Waker {
  wake(): void
  /** Rejects with the signal's reason when it aborts, so that a loop which forgot to look at its signal ends too. */
  wait(ms: number, signal?: AbortSignal): Promise<WaitOutcome>
}

export type WaitOutcome = 'woken' | 'elapsed'

export function createWaker(clock: Clock): Waker {
  const waiting = new Set<(outcome: WaitOutcome) => void>()
  let pending = false

  return {
    wake() {
      pending = waiting.size === 0
      for (const end of waiting) end('woken')
    },
    wait(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason)
          return
        }
        if (pending) {
          pending = false
          resolve('woken')
          return
        }
        const release = () => {
          cancel()
          waiting.delete(end)
          signal?.removeEventListener('abort', onAbort)
        }
        const end = (outcome: WaitOutcome) => {
          release()
          resolve(outcome)
        }
        const onAbort = () => {
          release()
          reject(signal?.reason)
        }
        const cancel = clock.setTimer(ms, () => end('elapsed'))
        waiting.add(end)
        signal?.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}
