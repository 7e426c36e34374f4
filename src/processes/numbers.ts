/**
 * The numbers of a lease, side by side. They hold together: a process stops before others may take its work, and others
 * take it soon after the process cannot do it any more.
 *
 *   0 s ── renewed ── 5 s ── renewed ── …            ended by others 1 s after its lock was seen free
 *                     last renewal + 12 s: begins nothing new
 *                     last renewal + 15 s: its work is free
 */

/** A lease ends this long after its last renewal. Long enough for two failed renewals in a row. */
export const LEASE_SECONDS = 15
export const LEASE_MS = LEASE_SECONDS * 1_000

/** A third of the lease: one renewal may be lost and another may be late. */
export const RENEW_MS = 5_000

/** Nothing is begun later than this after the last renewal was sent: the answer of the database may have been slow. */
export const SAFE_MS = LEASE_MS - 3_000

/** A process without its lock for this long is gone. One that merely connects again is back within that time. */
export const GONE_AFTER_MS = 1_000

/** All processes together look this often whether one of them is gone. */
const WATCH_MS = 2_000

/** A process that stands by for another one's work looks this often. */
export const STANDBY_WATCH_MS = 1_000

/** A renewal without an answer for this long says that connections may be dead. Less than the lease less one renewal. */
export const SILENT_MS = 5_000

export interface LookWords {
  /** How many other processes have a lease. */
  readonly others: number
  /** One of them does not hold its lock. */
  readonly isOneLockless: boolean
  readonly standsBy: boolean
  /** 0 to 1: processes that started together should not look together. */
  readonly spread: number
}

/** The more processes there are, the less often each of them looks, until each only renews its own lease. */
export function nextLookMs({ others, isOneLockless, standsBy, spread }: LookWords): number {
  if (others === 0) return RENEW_MS
  if (isOneLockless) return GONE_AFTER_MS
  if (standsBy) return STANDBY_WATCH_MS
  return Math.min(WATCH_MS * (others + 1), RENEW_MS) * (0.75 + spread / 4)
}
