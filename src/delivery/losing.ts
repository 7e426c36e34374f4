/** Work that is not ours any more: it is told so, and nothing is written about it. */
import { AftercommitError } from '../errors.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Places } from './places.ts'
import type { Run } from './run.ts'
import { type Claim, selectHeld } from './statements.ts'

/** The lease is gone, and with it every claim. */
export function loseAll(places: Places): void {
  const reason = new AftercommitError(
    'CLAIM_LOST',
    'The lease of this worker was lost; somebody else may be at it already.',
  )
  for (const run of places.running) lose(run, reason)
  places.waiting = []
}

/** Ends whatever does not carry our token any more, and answers what that was. */
export async function loseCancelled(db: Queryable, places: Places): Promise<readonly Claim[]> {
  const held = places.all
  if (held.length === 0) return []
  const kept = await selectHeld(
    db,
    held.map(({ claim }) => claim),
  )
  // What ended meanwhile is not cancelled: its row is gone because we are done with it.
  const gone = held.filter((run) => !kept.has(run.claim.id) && !run.ended && !run.completed && !run.lost)
  for (const run of gone) lose(run, cancelled(run))
  places.take((run) => run.lost)
  return gone.map(({ claim }) => claim)
}

export function lose(run: Run, reason: unknown): void {
  run.lost = true
  run.abort(reason)
}

function cancelled({ delivery }: Run): AftercommitError {
  return new AftercommitError(
    'CLAIM_LOST',
    `Delivery ${delivery.id} of "${delivery.name}" was cancelled, or somebody else has it: what is done now changes nothing.`,
  )
}
