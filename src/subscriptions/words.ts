/**
 * What an error may say about further attempts. Returning means done; throwing means another attempt by the policy; these
 * say more. `failure.ts` reads all of them.
 */
import { AftercommitError, type ErrorCode } from '../errors.ts'
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

/** Not now, or not in this process: it costs no attempt and comes again after a while. For parts of this library. */
export class NotNow extends AftercommitError {
  readonly delayMs: number

  constructor(code: ErrorCode, message: string, delayMs: number, options?: ErrorOptions) {
    super(code, message, options)
    this.delayMs = delayMs
  }
}

/** What an error of a call to somebody else's service says of itself beyond its class. */
export interface Advice {
  /** False: no number of attempts would help. */
  readonly transient?: boolean
  /** The destination asked for this much patience. */
  readonly retryAfterMs?: number
  /** The destination said that it will never come back. */
  readonly gone?: boolean
  /** It concerns one of many behind the destination: others that go there are not held back for it. */
  readonly single?: boolean
  /** This host was at fault, before anything was sent: no descriptor, no memory, no name server. Not an attempt. */
  readonly local?: boolean
}

export function adviceOf(error: unknown): Advice {
  return typeof error === 'object' && error !== null ? (error as Advice) : {}
}

/** Never try again: a dead letter now. */
export class GiveUp extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'GiveUp'
  }
}
