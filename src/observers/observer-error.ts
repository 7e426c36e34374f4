/**
 * What goes wrong with an observer. A message names the action or the setting and where it was sent to; it never holds a
 * payload, a body, a secret, or more of an address than its origin, because dead letters keep it. What a receiver said
 * is in `detail`, which only run records keep.
 */
import { AftercommitError, type ErrorCode } from '../errors.ts'

/** One of OB001 to OB014. */
export type ObserverCode = Extract<ErrorCode, `OB${string}`>

/** What was sent, fit for a run record: no body, no secret. */
export interface SentRequest {
  readonly method: string
  /** Values of the query and anything like a token in the path are masked. */
  readonly url: string
  /** Values of all but well-known harmless headers are masked. */
  readonly headers: Readonly<Record<string, string>>
}

/** What came back, fit for a run record. */
export interface Received {
  readonly status: number
  /** The first 200 characters, control characters escaped, our own secrets masked. */
  readonly body: string
}

export interface ObserverErrorOptions {
  /** Worth another attempt. */
  readonly transient?: boolean
  /** The receiver asked for this long. */
  readonly retryAfterMs?: number | undefined
  /** HTTP or SMTP. */
  readonly status?: number | undefined
  /** The receiver is gone for good (HTTP 410): the action is to be paused. */
  readonly gone?: boolean
  /** It concerns one of many receivers behind a destination, which is not to blame. */
  readonly single?: boolean
  /** This host was at fault, before anything was sent. Not an attempt, and nothing that is held against the destination. */
  readonly local?: boolean
  /** For mistakes in the configuration: where, seen from the action. */
  readonly path?: readonly (string | number)[]
  readonly detail?: { readonly request?: SentRequest; readonly response?: Received }
  readonly cause?: unknown
}

export class ObserverError extends AftercommitError {
  declare readonly code: ObserverCode
  readonly transient: boolean
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined
  readonly gone: boolean
  readonly single: boolean
  readonly local: boolean
  readonly path: readonly (string | number)[]
  readonly detail: { readonly request?: SentRequest; readonly response?: Received }

  constructor(code: ObserverCode, message: string, options: ObserverErrorOptions = {}) {
    super(code, message, options.cause === undefined ? {} : { cause: options.cause })
    this.transient = options.transient ?? false
    this.retryAfterMs = options.retryAfterMs
    this.status = options.status
    this.gone = options.gone ?? false
    this.single = options.single ?? false
    this.local = options.local ?? false
    this.path = options.path ?? []
    this.detail = options.detail ?? {}
  }
}
