/** One call of a receiver over HTTP, and what its answer means for the action: done, another attempt, or never again. */
import type { Http, HttpRequest } from '../network/index.ts'
import { type Answer, CallFailed, NAME_SERVER_AWAY, parseRetryAfter, RefusedAddress } from '../network/index.ts'
import { type ObserverCode, ObserverError, type Received, type SentRequest } from '../observer-error.ts'
import { toReceived } from './record.ts'

export interface CallOptions {
  /** Opens the message: `The webhook to https://erp.example.com`. */
  readonly what: string
  readonly code: ObserverCode
  readonly timeoutCode: ObserverCode
  readonly sent: SentRequest
  /** Masked where the receiver repeats them. */
  readonly secrets: readonly string[]
  readonly now: Date
}

/** Resolves for 2xx; throws `ObserverError` otherwise, or the reason of the request's signal. */
export async function callHttp(http: Http, request: HttpRequest, options: CallOptions): Promise<Received> {
  const answer = await askHttp(http, request, options)
  const response = toReceived(answer, options.secrets)
  if (answer.status < 300) return response
  throw answeredBadly(answer, response, options)
}

/** The answer, whatever it says; throws when there is none. For receivers whose answers say more than their status. */
export async function askHttp(http: Http, request: HttpRequest, options: Asking): Promise<Answer> {
  try {
    return await http.send(request)
  } catch (error) {
    throw request.signal.aborted ? error : toObserverError(error, options)
  }
}

type Asking = Pick<CallOptions, 'what' | 'code' | 'timeoutCode' | 'sent'>

export function answeredBadly({ status, retryAfter }: Answer, response: Received, options: CallOptions): ObserverError {
  const transient = isTransientStatus(status)
  const advice = adviceFor(status)
  return new ObserverError(options.code, `${options.what} was answered with ${status}. ${advice}`, {
    transient,
    status,
    gone: status === 410,
    retryAfterMs: transient ? parseRetryAfter(retryAfter, options.now) : undefined,
    detail: { request: options.sent, response },
  })
}

export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500
}

function adviceFor(status: number): string {
  if (isTransientStatus(status)) return 'It is tried again as configured.'
  if (status === 410) return 'The receiver is gone for good, so the action is paused. Remove it or correct its address.'
  if (status < 400) return 'Redirects are not followed, as they could lead anywhere. Give the final address.'
  return 'It is not tried again. Look at the answer in the run record, correct the action, then redrive the dead letter.'
}

function toObserverError(error: unknown, { what, code, timeoutCode, sent }: Asking): unknown {
  const detail = { request: sent }
  if (error instanceof RefusedAddress) {
    return new ObserverError(
      'OB012',
      `${what} was not sent, because ${error.message}. If that is meant, add the address to [network] allow.`,
      { detail: {} },
    )
  }
  if (!(error instanceof CallFailed)) return error
  if (error.local) {
    return new ObserverError(
      code,
      `${what} was not sent: ${localReason(error.code)} It is made again, and does not count.`,
      {
        ...{ transient: true, local: true, detail },
      },
    )
  }
  const message = error.timedOut
    ? `${what} had no answer in time (${error.code}). It is tried again as configured; the receiver may have got it.`
    : `${what} failed on the way (${error.code}). It is tried again as configured.`
  return new ObserverError(error.timedOut ? timeoutCode : code, message, { transient: true, detail })
}

/** In words, with the code of the system. */
export function localReason(code: string): string {
  if (code === NAME_SERVER_AWAY) return 'no name server answers this host.'
  const lack = /^E[MN]FILE$/.test(code) ? 'file descriptors; raise the limit (`ulimit -n`)' : 'memory'
  return `this host is out of ${lack} (${code}).`
}
