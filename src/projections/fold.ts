/** A batch of events folded into states. Pure: it knows neither where states come from nor where they go. */
import type { AftercommitEvent } from '../events/index.ts'
import { checkAnswer } from '../runtime/index.ts'

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
    const state = checkAnswer(apply(known === undefined ? (stored.get(id) ?? null) : known.state, event), {
      what: `\`apply\` of projection "${projection}"`,
      so: 'nothing was stored',
      advice:
        'Return the new state, or null to delete it; what needs to wait or to query belongs into a transactional subscription.',
    })
    folded.set(id, { state, position: event.position })
  }
  for (const [id, { state }] of folded) if (state === null && !stored.has(id)) folded.delete(id)
  return folded
}
