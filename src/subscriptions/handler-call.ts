/** One call of a handler: its context, its timeout, its cause. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Cause, type Clock, formatDuration, runWithCause } from '../runtime/index.ts'
import type { HandlerContext } from './definition.ts'

/** The signal is made when somebody looks at it: most handlers never do, and it costs more than the rest of the call. */
export class CallContext implements HandlerContext {
  readonly attempt: number
  readonly subscription: string
  readonly idempotencyKey: string
  readonly redriven: boolean
  readonly tx: unknown
  #controller: AbortController | undefined
  #reason: unknown

  constructor(subscription: string, event: AnyEvent, attempt: number, redriven: boolean, tx: unknown) {
    this.subscription = subscription
    this.attempt = attempt
    this.redriven = redriven
    this.idempotencyKey = `${subscription}:${event.id}`
    this.tx = tx
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}

/** Runs `fn` as something that this event caused: what it emits carries the chain on. `fn` gets a copy, if anything. */
export function causedBy<T>(event: AnyEvent, fn: () => T): T {
  return runWithCause(() => toCause(event), fn)
}

function toCause({ id, tenant, metadata }: AnyEvent): Cause {
  const { correlationId, userId, depth, traceparent } = metadata
  return {
    correlationId: correlationId ?? id,
    causationId: id,
    depth,
    ...(userId === null ? {} : { userId }),
    ...(tenant === null ? {} : { tenant }),
    ...(traceparent === null ? {} : { traceparent }),
  }
}

/** A call that is still running after its time is given up; what it does from then on changes nothing here. */
export function withinTime(
  promise: PromiseLike<unknown>,
  timeoutMs: number,
  clock: Clock,
  context: CallContext,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(timeoutMs, () => {
      const error = new AftercommitError(
        'TIMED_OUT',
        `The handler of "${context.subscription}" was still running after ${formatDuration(timeoutMs)}. Its signal has fired; ` +
          'make it end then, or raise `timeout`.',
      )
      context.abort(error)
      reject(error)
    })
    promise.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error) => {
        cancel()
        reject(error)
      },
    )
  })
}
