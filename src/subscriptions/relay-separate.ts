/** Finds the messages of a batch that a sink refuses. It knows how to try one of them and nothing else of the sink. */
import type { AnyEvent } from '../log/index.ts'
import { isUnavailable } from './sink.ts'
import { GiveUp } from './words.ts'

export interface Failure {
  readonly error: unknown
}

/** What came of the messages of a batch so far, by position. */
export interface Known {
  readonly accepted: Set<bigint>
  readonly refused: Map<bigint, unknown>
}

export interface Trial {
  /** Sends one message by itself. */
  readonly attempt: (event: AnyEvent) => Promise<Failure | undefined>
  readonly keyOf: (event: AnyEvent) => string
  /** Nothing may pass a message that is refused. */
  readonly stops: boolean
}

/** When the first messages of so many other keys fail too, it is not the message. */
const PROBES = 5

/** One by one, in the order of each key. `whole` is how the batch itself failed. */
export async function separate(
  events: readonly AnyEvent[],
  whole: Failure,
  known: Known,
  trial: Trial,
): Promise<'accepted' | 'refused' | 'unavailable'> {
  const heldKeys = new Set<string>()
  for (const [at, event] of events.entries()) {
    const key = trial.keyOf(event)
    if (known.accepted.has(event.position) || heldKeys.has(key)) continue
    const failure = events.length === 1 ? whole : await trial.attempt(event)
    if (failure === undefined) {
      known.accepted.add(event.position)
      continue
    }
    if (isUnavailable(failure.error)) return 'unavailable'
    heldKeys.add(key)
    const certain = trial.stops || failure.error instanceof GiveUp
    if (!certain && (await allFail(firstOfOtherKeys(events.slice(at + 1), heldKeys, known, trial), known, trial))) {
      return 'unavailable'
    }
    known.refused.set(event.position, failure.error)
    if (trial.stops) break
  }
  return known.refused.size > 0 ? 'refused' : 'accepted'
}

/** False as soon as one passes, and when there are too few to tell: then the message is held responsible. */
async function allFail(probes: readonly AnyEvent[], known: Known, { attempt }: Trial): Promise<boolean> {
  for (const probe of probes) {
    if ((await attempt(probe)) !== undefined) continue
    known.accepted.add(probe.position)
    return false
  }
  return probes.length === PROBES
}

function firstOfOtherKeys(
  events: readonly AnyEvent[],
  heldKeys: ReadonlySet<string>,
  { accepted }: Known,
  { keyOf }: Trial,
): AnyEvent[] {
  const first = new Map<string, AnyEvent>()
  for (const event of events) {
    const key = keyOf(event)
    if (!heldKeys.has(key) && !accepted.has(event.position) && !first.has(key)) first.set(key, event)
  }
  return [...first.values()].slice(0, PROBES)
}
