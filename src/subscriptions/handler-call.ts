/** One call of a handler: its context, its timeout, its cause. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Cause, type Clock, formatDuration, LazySignal, runWithCause, withDeadline } from '../runtime/index.ts'
import type { HandlerContext } from './definition.ts'
import type { Leftovers } from './leftovers.ts'

/** What an event left before it was finished, now or at an earlier owner. */
export interface Leaving {
  /** Owners of actions that are not to be attempted again. */
  readonly settled: readonly string[]
  /** Writes a part while the event goes on. */
  writeEarly(part: Leftovers): void
}

/** The signal is made when somebody looks at it: most handlers never do, and it costs more than the rest of the call. */
export class CallContext extends LazySignal implements HandlerContext {
  readonly attempt: number
  readonly subscription: string
  readonly idempotencyKey: string
  readonly redriven: boolean
  readonly tx: unknown
  /** For handlers that leave rows and letters; see Leftovers. */
  leaving: Leaving | undefined

  constructor(subscription: string, event: AnyEvent, attempt: number, redriven: boolean, tx: unknown) {
    super()
    this.subscription = subscription
    this.attempt = attempt
    this.redriven = redriven
    // No subscription id contains a slash, so two subscriptions never share a key, whatever their event ids contain.
    this.idempotencyKey = `${subscription}/${event.id}`
    this.tx = tx
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
  return withDeadline(promise, timeoutMs, clock, () => {
    const error = new AftercommitError(
      'TIMED_OUT',
      `The handler of "${context.subscription}" was still running after ${formatDuration(timeoutMs)}. Its signal has fired; ` +
        'make it end then, or raise `timeout`.',
    )
    context.abort(error)
    return error
  })
}
