/** Those who wait for the log to go on. While nobody has for a while, there is no hurry to read what keeps coming. */
import type { Clock } from '../runtime/index.ts'

const HURRY_MS = 1_000

export class Waiters {
  readonly #clock: Clock
  readonly #waiting = new Set<() => void>()
  #lastCame = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Somebody waits, or did a moment ago. */
  get areThere(): boolean {
    return this.#waiting.size > 0 || this.#clock.monotonic() - this.#lastCame < HURRY_MS
  }

  /** Somebody came who may want to wait. */
  came(): void {
    this.#lastCame = this.#clock.monotonic()
  }

  /** Resolves when there is news, or the signal is aborted. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(end)
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.#waiting.add(end)
      signal.addEventListener('abort', end, { once: true })
    })
  }

  tell(): void {
    for (const end of [...this.#waiting]) end()
  }
}
