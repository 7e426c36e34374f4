/**
 * Faults in a row of rows that this process repeats. Kept in memory: a row that another process claims next begins a
 * streak there. Bounded; the row that failed longest ago is forgotten first.
 */
import type { FaultStreak } from '../subscriptions/index.ts'

const MOST = 10_000

export class Streaks {
  readonly #streaks = new Map<bigint, FaultStreak>()

  get(id: bigint): FaultStreak | undefined {
    return this.#streaks.size === 0 ? undefined : this.#streaks.get(id)
  }

  /** `undefined`: the streak has ended. */
  put(id: bigint, streak: FaultStreak | undefined): void {
    if (streak === undefined && this.#streaks.size === 0) return
    this.#streaks.delete(id)
    if (streak === undefined) return
    this.#streaks.set(id, streak)
    if (this.#streaks.size > MOST) this.#streaks.delete(this.#streaks.keys().next().value!)
  }
}
