/**
 * Claims without an answer: the connection was lost, and whether the database has given us something is not known. What
 * was claimed like that was never begun here, so it is given back. Not only once: the statement may still wait for a lock.
 */
import type { Queryable } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import { releaseClaims } from './statements.ts'

export interface Doubts {
  add(token: bigint): void
  /** Gives back what there may be, if it is time to. Rejects when the database does not answer; then it is asked again. */
  settle(): Promise<void> | undefined
}

const ASK_EVERY_MS = 5_000
/** Longer than any statement of ours may take. */
const ASK_FOR_MS = 70_000

export function createDoubts(db: Queryable, clock: Clock): Doubts {
  let doubts: { token: bigint; until: number }[] = []
  let askAt = 0

  async function ask(): Promise<void> {
    const asked = clock.monotonic()
    await releaseClaims(
      db,
      doubts.map(({ token }) => token),
    )
    askAt = asked + ASK_EVERY_MS
    doubts = doubts.filter(({ until }) => until > asked)
  }

  return {
    add(token) {
      doubts.push({ token, until: clock.monotonic() + ASK_FOR_MS })
      askAt = 0
    },
    settle: () => (doubts.length === 0 || clock.monotonic() < askAt ? undefined : ask()),
  }
}
