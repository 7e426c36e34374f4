/**
 * One call of a handler in memory: its context, its time, its cause, and what becomes of it when it fails. The decisions
 * are those of a real subscription; the contract suite holds the two together.
 */
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import { classify, sqlstateOf } from '../postgres/index.ts'
import { backoffDelay, type Clock, formatDuration, type RetryPolicy, runWithCause } from '../runtime/index.ts'
import { GiveUp, type HandlerContext, RetryAfter, type toDefinition } from '../subscriptions/index.ts'
import type { OpenTransaction } from './memory-transaction.ts'

export type Definition = ReturnType<typeof toDefinition>

/** An event that a handler is called with. */
export interface Called {
  readonly event: AnyEvent
  readonly source: 'log' | 'letter' | 'parked'
  /** What `key` threw for it: a failure of this event, like any other. */
  readonly keyError?: unknown
  /** Tries before this one. */
  readonly attempts: number
}

export interface CallParts {
  readonly clock: Clock
  readonly definitions: EventDefinitions | undefined
  readonly begin: () => OpenTransaction
  /** Marks what `fn` does as part of a delivery. */
  readonly within: <T>(fn: () => T) => T
}

/** Calls a handler with one event, or with several when it takes batches. Throws whatever makes the try a failure. */
export async function callHandler(
  { id, authorize, handle, handleBatch, transactional, timeoutMs }: Definition,
  items: readonly Called[],
  { clock, definitions, begin, within }: CallParts,
): Promise<void> {
  const unkeyed = items.find(({ keyError }) => keyError !== undefined)
  if (unkeyed) throw unkeyed.keyError
  const events = items.map(({ event }) => liftEvent(definitions, event))
  for (const event of authorize ? events : []) {
    if (await within(() => authorize!(event, { subscription: id }))) continue
    throw new AftercommitError('UNAUTHORIZED', `Event "${event.id}" is not authorised for "${id}".`)
  }
  const tx = transactional ? begin() : undefined
  const context = new CallContext(id, events[0]!, items[0]!, tx?.words)
  try {
    const called = within(() =>
      causedBy(events[0]!, () => (handle ? handle(events[0]!, context) : handleBatch!(events, context))),
    )
    if (isThenable(called)) await withinTime(called, timeoutMs, clock, context)
  } catch (error) {
    tx?.rollBack()
    throw error
  }
  tx?.commit()
}

/** The signal is made when somebody looks at it: most handlers never do. */
class CallContext implements HandlerContext {
  readonly attempt: number
  readonly subscription: string
  readonly idempotencyKey: string
  readonly redriven: boolean
  readonly tx: unknown
  #controller: AbortController | undefined

  constructor(subscription: string, event: AnyEvent, { attempts, source }: Called, tx: unknown) {
    this.attempt = attempts + 1
    this.subscription = subscription
    this.idempotencyKey = `${subscription}:${event.id}`
    this.redriven = source !== 'log'
    this.tx = tx
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}

export type Verdict =
  | { readonly kind: 'dead' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly counts: boolean }

/** `attempt` counts this try. Delays are the middle of what jitter allows, so that a test sees the same every time. */
export function decideFailure(error: unknown, attempt: number, policy: RetryPolicy, transactional: boolean): Verdict {
  if (error instanceof GiveUp || (error instanceof AftercommitError && HOPELESS.has(error.code)))
    return { kind: 'dead' }
  if (isDatabaseFault(error, transactional)) return { kind: 'retry', delayMs: FAULT_DELAY_MS, counts: false }
  if (attempt >= policy.maxAttempts) return { kind: 'dead' }
  const delayMs =
    error instanceof RetryAfter ? Math.min(error.delayMs, LONGEST_WAIT_MS) : backoffDelay(attempt, policy, () => 0.5)
  return { kind: 'retry', delayMs, counts: true }
}

const HOPELESS: ReadonlySet<string> = new Set(['UPCAST_FAILED', 'UNAUTHORIZED', 'UNDECODABLE', 'TOO_DEEP'])
const FAULTS: ReadonlySet<string> = new Set(['DATABASE_UNREACHABLE', 'OUTCOME_UNKNOWN', 'POOL_EXHAUSTED', 'LEASE_LOST'])
const FAULT_DELAY_MS = 100
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000

/** A handler may use a database of its own: its deadlocks are not tries. */
function isDatabaseFault(error: unknown, transactional: boolean): boolean {
  if (error instanceof AftercommitError) return FAULTS.has(error.code)
  if (sqlstateOf(error) !== undefined) return classify(error) !== 'permanent'
  return transactional && classify(error) === 'connection'
}

function causedBy<T>(event: AnyEvent, fn: () => T): T {
  const { correlationId, userId, depth, traceparent } = event.metadata
  const cause = {
    correlationId: correlationId ?? event.id,
    causationId: event.id,
    depth,
    userId: userId ?? undefined,
    tenant: event.tenant ?? undefined,
    traceparent: traceparent ?? undefined,
  }
  return runWithCause(cause, fn)
}

function withinTime(
  called: PromiseLike<unknown>,
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
    called.then(
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
