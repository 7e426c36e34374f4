/**
 * Claims without an answer: the connection was lost, and the worker does not know whether it has rows. Rows of such a claim
 * were never begun here, so they are released. One release is not enough: the statement may still wait for a lock, or its
 * commit for a standby, and only the server can end it.
 */
import type { Queryable } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import { releaseClaims, selectOldestTransactionMs } from './statements.ts'

export interface UnansweredClaims {
  add(token: bigint): void
  /** Gives back what there may be, if it is time to. Rejects when the database does not answer; then it is asked again. */
  settle(): Promise<void> | undefined
}

const ASK_EVERY_MS = 5_000
/** Longer than a statement of ours may take to reach the server and to begin there. */
const BEGUN_WITHIN_MS = 70_000
/** What hangs for longer is not about to end. */
const ASK_OLD_EVERY_MS = 60_000

export function createUnansweredClaims(db: Queryable, clock: Clock): UnansweredClaims {
  let doubts: { token: bigint; since: number }[] = []
  let askAt = 0

  async function ask(): Promise<void> {
    const asked = clock.monotonic()
    const isOld = ({ since }: { since: number }) => since + BEGUN_WITHIN_MS <= asked
    // Before the rows are looked at: what ends in between can be seen there.
    const oldestMs = doubts.some(isOld) ? await selectOldestTransactionMs(db) : 0
    await releaseClaims(
      db,
      doubts.map(({ token }) => token),
    )
    askAt = asked + (doubts.every(isOld) ? ASK_OLD_EVERY_MS : ASK_EVERY_MS)
    // Whatever is under way has begun too late to be it.
    doubts = doubts.filter(({ since }) => since + BEGUN_WITHIN_MS > asked - oldestMs)
  }

  return {
    add(token) {
      doubts.push({ token, since: clock.monotonic() })
      askAt = 0
    },
    settle: () => (doubts.length === 0 || clock.monotonic() < askAt ? undefined : ask()),
  }
}
