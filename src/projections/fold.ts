/** A batch of events folded into states. Pure: it knows neither where states come from nor where they go. */
import { AftercommitError } from '../errors.ts'
import type { AftercommitEvent } from '../events/index.ts'

export interface Folded {
  /** Null: there is no state any more. */
  readonly state: unknown
  /** Of the last event that was folded into it. */
  readonly position: bigint
}

export interface Fold {
  readonly projection: string
  readonly keyOf: (event: AftercommitEvent) => string
  readonly apply: (state: unknown, event: AftercommitEvent) => unknown
}

/** Only what has to be written: an id that had no state and still has none is left out. */
export function foldEvents(
  { projection, keyOf, apply }: Fold,
  stored: ReadonlyMap<string, unknown>,
  events: readonly AftercommitEvent[],
): Map<string, Folded> {
  const folded = new Map<string, Folded>()
  for (const event of events) {
    const id = keyOf(event)
    const known = folded.get(id)
    const state = apply(known === undefined ? (stored.get(id) ?? null) : known.state, event)
    checkState(projection, state)
    folded.set(id, { state, position: event.position })
  }
  for (const [id, { state }] of folded) if (state === null && !stored.has(id)) folded.delete(id)
  return folded
}

/** A promise would be stored as an empty object, and nothing at all would pass for a deletion: neither is meant. */
function checkState(projection: string, state: unknown): void {
  const isPromise = typeof (state as { then?: unknown } | null | undefined)?.then === 'function'
  if (state !== undefined && !isPromise) return
  throw new AftercommitError(
    'BAD_STATE',
    `\`apply\` of projection "${projection}" returned ${isPromise ? 'a promise' : 'undefined'}, so nothing was stored. Return the ` +
      'new state, or null to delete it; what needs to wait or to query belongs into a transactional subscription.',
  )
}
