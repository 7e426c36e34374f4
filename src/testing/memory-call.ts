/**
 * One call of a handler in memory: its context, its time, its cause, and what becomes of it when it fails. The decisions
 * are those of a real subscription; the contract suite holds the two together.
 */
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import { type Clock, isThenable } from '../runtime/index.ts'
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

/**
 * Calls a handler with one event, or with several when it takes batches. Throws, or rejects, with whatever makes the try
 * a failure; a promise only where something is waited for, so that a test with thousands of events stays quick.
 */
export function callHandler(
  definition: Definition,
  items: readonly Called[],
  parts: CallParts,
): Promise<void> | undefined {
  const unkeyed = items.find(({ keyError }) => keyError !== undefined)
  if (unkeyed) throw unkeyed.keyError
  const events = items.map(({ event }) => liftEvent(parts.definitions, event))
  if (!definition.authorize) return call(definition, items, events, parts)
  const authorized = parts.within(() => assertAuthorized(definition, events))
  return authorized.then(() => call(definition, items, events, parts))
}

function call(
  { id, handle, handleBatch, transactional, timeoutMs }: Definition,
  items: readonly Called[],
  events: readonly AnyEvent[],
  { clock, begin, within }: CallParts,
): Promise<void> | undefined {
  const first = items[0]!
  const tx = transactional ? begin() : undefined
  const context = new CallContext(id, events[0]!, first.attempts + 1, first.source !== 'log', tx?.words)
  let called: unknown
  try {
    called = within(() =>
      causedBy(first.event, () => (handle ? handle(events[0]!, context) : handleBatch!(events, context))),
    )
  } catch (error) {
    tx?.rollBack()
    throw error
  }
  if (isThenable(called)) return settle(withinTime(called, timeoutMs, clock, context), tx)
  tx?.commit()
  return undefined
}

async function settle(called: Promise<unknown>, tx: OpenTransaction | undefined): Promise<void> {
  try {
    await called
  } catch (error) {
    tx?.rollBack()
    throw error
  }
  tx?.commit()
}
