/** A call on the hot path: there is no row, so there is nothing to complete. */
import { type Clock, LazySignal } from '../runtime/index.ts'
import type { RunContext } from './delivery.ts'

/** The signal is made when somebody looks at it. */
export class HotCall extends LazySignal implements RunContext {
  #startedMs: number | undefined

  async complete(): Promise<void> {}

  begin(clock: Clock): void {
    this.#startedMs = clock.monotonic()
  }

  /** How long ago the call began; nothing for one that ended at once. */
  sinceMs(clock: Clock): number {
    return this.#startedMs === undefined ? 0 : clock.monotonic() - this.#startedMs
  }
}
