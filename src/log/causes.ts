/** The tree of causes around one event: what led to it, and what it led to. */
import { AftercommitError } from '../errors.ts'
import type { Queryable } from '../postgres/index.ts'
import { type AnyEvent, toEvent } from './event-row.ts'
import { readThrough } from './read-through.ts'
import { selectEvent } from './statements.ts'
import { selectHead } from './window-statements.ts'

export interface EventTrace {
  readonly event: AnyEvent
  /** From the first cause down to the event's own. */
  readonly ancestors: readonly AnyEvent[]
  /** Everything it led to, directly or not, in position order. */
  readonly descendants: readonly AnyEvent[]
}

/** A chain shares its correlation id, so it is read at once and sorted out in memory. */
const MOST = 10_000

export async function traceEvents(db: Queryable, id: string): Promise<EventTrace> {
  const row = await selectEvent(db, id)
  if (row === undefined) {
    throw new AftercommitError('EVENT_NOT_FOUND', `There is no event with the id ${JSON.stringify(id)} in the log.`)
  }
  const event = toEvent(row)
  const { correlationId } = event.metadata
  if (correlationId === null) return { event, ancestors: [], descendants: [] }
  const chain = await selectCorrelated(db, correlationId, MOST)
  return { event, ...relativesOf(event, chain) }
}

/** In position order. Nothing is indexed by correlation, so the log is read from its beginning. */
export async function selectCorrelated(db: Queryable, correlationId: string, limit: number): Promise<AnyEvent[]> {
  const rows = await readThrough(db, { after: 0n, upTo: await selectHead(db), correlationId, limit })
  return rows.map(toEvent)
}

function relativesOf(event: AnyEvent, chain: readonly AnyEvent[]): Omit<EventTrace, 'event'> {
  const byId = new Map(chain.map((one) => [one.id, one]))
  const ancestors: AnyEvent[] = []
  const seen = new Set([event.id])
  for (let cause = byId.get(event.metadata.causationId ?? ''); cause && !seen.has(cause.id); ) {
    seen.add(cause.id)
    ancestors.unshift(cause)
    cause = byId.get(cause.metadata.causationId ?? '')
  }
  // An effect comes after its cause, so one pass in position order finds them all.
  const reached = new Set([event.id])
  const descendants = chain.filter((one) => {
    const follows = one.metadata.causationId !== null && reached.has(one.metadata.causationId) && one.id !== event.id
    if (follows) reached.add(one.id)
    return follows
  })
  return { ancestors, descendants }
}
