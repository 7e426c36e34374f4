/** A call on the hot path: there is no row, so there is nothing to complete. */
import type { Clock } from '../runtime/index.ts'
import type { RunContext } from './delivery.ts'

/** The signal is made when somebody looks at it. */
export class HotCall implements RunContext {
  #startedMs: number | undefined
  #controller: AbortController | undefined
  #reason: unknown

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#reason ??= reason
    this.#controller?.abort(reason)
  }

  async complete(): Promise<void> {}

  begin(clock: Clock): void {
    this.#startedMs = clock.monotonic()
  }

  /** How long ago the call began; nothing for one that ended at once. */
  sinceMs(clock: Clock): number {
    return this.#startedMs === undefined ? 0 : clock.monotonic() - this.#startedMs
  }
}
