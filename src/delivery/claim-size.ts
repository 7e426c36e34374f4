/** Decides how many rows to claim next and how long to rest. Its only state is the number of rows that ended. */

export interface ClaimSize {
  ended(): void
  /**
   * Rows to claim next, given rows in flight, the slow ones among them and the time since the last claim. 0: not worth a
   * statement yet.
   */
  room(held: number, stuck: number, sinceClaimMs: number): number
  /** When to ask again for room. */
  patienceMs(held: number): number
  /** `dueMs`: when the next one is due, 0 for something that waits for a limit; `hears`: the bell will ring for new work. */
  restMs(dueMs: number | undefined, hears: boolean): number
}

/** Work that takes no time is claimed in batches of this many. */
const MOST_HELD = 500
/** So long is waited for a batch to be worth it while there is a place to run more. */
const PATIENCE_MS = 25
/** Something is looked for at least this often. */
export const LONGEST_REST_MS = 30_000
const FIRST_LOOK_MS = 25
const LAST_LOOK_MS = 1_000

/**
 * Holds what can be run at once, and more while it ends quickly: what was held and ended between two claims doubles the
 * batch, so that slow work is never hoarded by one process and quick work costs few statements.
 */
export function createClaimSize(concurrency: number): ClaimSize {
  let hold = concurrency
  let endedSinceClaim = 0
  let lookMs = FIRST_LOOK_MS
  return {
    ended() {
      endedSinceClaim++
    },
    room(held, stuck, sinceClaimMs) {
      // Half of it used up makes a batch worth a round trip. Work that goes on and on must not keep the rest idle, though.
      const isWorthIt = held === stuck || hold - held >= (hold - stuck) / 2
      const isIdling = held < concurrency && sinceClaimMs >= PATIENCE_MS
      if (!isWorthIt && !isIdling) return 0
      hold =
        endedSinceClaim >= hold / 2
          ? Math.min(hold * 2, Math.max(MOST_HELD, concurrency))
          : Math.max(concurrency, hold >> 1)
      endedSinceClaim = 0
      return Math.max(hold - held, 0)
    },
    patienceMs: (held) => (held < concurrency ? PATIENCE_MS : LAST_LOOK_MS),
    restMs(dueMs, hears) {
      const blocked = dueMs !== undefined && dueMs <= 0
      lookMs = blocked || !hears ? Math.min(lookMs * 2, LAST_LOOK_MS) : FIRST_LOOK_MS
      const looks = blocked || !hears ? lookMs : LONGEST_REST_MS
      return Math.max(1, Math.min(blocked ? looks : (dueMs ?? LONGEST_REST_MS), looks))
    },
  }
}
