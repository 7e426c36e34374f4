/**
 * What a handler may say. Returning means done; throwing means try again by the policy. These two say more.
 */
import { type Duration, toMs } from '../runtime/index.ts'

/** Try again, but not before this long: a destination that asked for it, a lock that somebody holds. Counts as a try. */
export class RetryAfter extends Error {
  readonly delayMs: number

  constructor(delay: Duration, reason = 'asked to be tried again later') {
    super(reason)
    this.name = 'RetryAfter'
    this.delayMs = toMs(delay, 'RetryAfter')
  }
}

/** Never try again: a dead letter now. */
export class GiveUp extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'GiveUp'
  }
}
