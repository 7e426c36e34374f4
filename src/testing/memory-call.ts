/**
 * One call of a handler in memory: its context, its time, its cause, and what becomes of it when it fails. The decisions
 * are those of a real subscription; the contract suite holds the two together.
 */
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import type { Clock } from '../runtime/index.ts'
import { assertAuthorized, CallContext, causedBy, type Definition, withinTime } from '../subscriptions/index.ts'
import type { OpenTransaction } from './memory-transaction.ts'

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
  definition: Definition,
  items: readonly Called[],
  { clock, definitions, begin, within }: CallParts,
): Promise<void> {
  const { id, handle, handleBatch, transactional, timeoutMs } = definition
  const unkeyed = items.find(({ keyError }) => keyError !== undefined)
  if (unkeyed) throw unkeyed.keyError
  const events = items.map(({ event }) => liftEvent(definitions, event))
  await within(() => assertAuthorized(definition, events))
  const tx = transactional ? begin() : undefined
  const context = new CallContext(id, events[0]!, items[0]!.attempts + 1, items[0]!.source !== 'log', tx?.words)
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
