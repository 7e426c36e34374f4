/** One request and its answer, as undici reports them. Settles once; whatever is reported later is not listened to. */
import type { Dispatcher } from 'undici'
import type { Clock } from '../../runtime/index.ts'
import { RefusedAddress } from './dial.ts'
import { isLocalFault } from './local-fault.ts'
import { type Abort, onAbort } from './on-abort.ts'

export interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The first bytes; never all of a long body. */
  readonly start: Buffer
}

/** There is no answer. Holds nothing of the request, and nothing of what came in its place. */
export class CallFailed extends Error {
  readonly timedOut: boolean
  /** This host was at fault, before anything was sent. */
  readonly local: boolean
  /** The word of Node or undici: ECONNREFUSED, CERT_HAS_EXPIRED, UND_ERR_SOCKET … */
  readonly code: string

  constructor(code: string, timedOut = false) {
    super(`the call failed (${code})`)
    this.name = 'CallFailed'
    this.code = code
    this.timedOut = timedOut
    this.local = isLocalFault(code)
  }
}

const KEPT_BYTES = 1_024
const MOST_BYTES = 65_536
const MOST_INTERIM_ANSWERS = 20
const NOTHING = Buffer.alloc(0)

interface Limits {
  readonly timeoutMs: number
  readonly keepBytes?: number
  readonly signal: Abort
}

type Controller = Dispatcher.DispatchController

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: unknown) => void
  readonly #cancelTimer: () => void
  #stopListening: () => void = () => {}
  #controller: Controller | undefined
  #settled = false
  #status = 0
  #retryAfter: string | undefined
  #start = NOTHING
  #received = 0
  #interim = 0
  readonly #keepBytes: number

  constructor(
    { timeoutMs, keepBytes = KEPT_BYTES, signal }: Limits,
    clock: Clock,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#keepBytes = keepBytes
    this.#cancelTimer = clock.setTimer(timeoutMs, () => this.#cut(new CallFailed('TIMED_OUT', true)))
    this.#stopListening = onAbort(signal, () => this.#cut(signal.reason))
  }

  /** Comes when a connection is ready to take the request, which may be after its time. */
  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#settled) controller.abort(new CallFailed('TIMED_OUT', true))
  }

  onResponseStart(_: Controller, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) {
      this.#interim++
      if (this.#interim > MOST_INTERIM_ANSWERS) this.#cut(new CallFailed('TOO_MANY_INTERIM_ANSWERS'))
      return
    }
    this.#status = status
    const retryAfter = headers['retry-after']
    this.#retryAfter = typeof retryAfter === 'string' ? retryAfter : retryAfter?.[0]
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    this.#received += chunk.length
    const room = this.#keepBytes - this.#start.length
    // Joining copies, as must be: the parser's memory is one block for many answers.
    if (room > 0) this.#start = Buffer.concat([this.#start, chunk.subarray(0, room)])
    if (this.#received > MOST_BYTES) this.#cut(new CallFailed('TOO_LONG'))
  }

  onResponseEnd(): void {
    this.#settle(undefined)
  }

  onResponseError(_: Controller, error: Error): void {
    this.#settle(error instanceof RefusedAddress ? error : new CallFailed(codeOf(error), isTimeout(error)))
  }

  /** Ends the exchange from our side, and with it the connection. */
  #cut(reason: unknown): void {
    if (this.#settled) return
    this.#settle(reason)
    this.#controller?.abort(new CallFailed('CUT'))
  }

  #settle(reason: unknown): void {
    if (this.#settled) return
    this.#settled = true
    this.#cancelTimer()
    this.#stopListening()
    if (this.#status === 0) this.#reject(reason)
    else this.#resolve({ status: this.#status, retryAfter: this.#retryAfter, start: this.#start })
  }
}

/** The innermost code says most: undici wraps what the socket said. */
function codeOf(error: Error): string {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (cause instanceof Error && 'code' in cause) return codeOf(cause)
  const inner = error instanceof AggregateError ? error.errors.find((one) => one instanceof Error) : undefined
  if (inner !== undefined && inner !== error) return codeOf(inner)
  if (error.name === 'HTTPParserError') return 'NOT_HTTP'
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'UNKNOWN'
}

function isTimeout(error: Error): boolean {
  return (error as { code?: unknown }).code === 'UND_ERR_CONNECT_TIMEOUT'
}
