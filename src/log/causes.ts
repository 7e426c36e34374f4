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
  /** False when its correlation has more than 10,000 events in the range that was searched: descendants may be missing. */
  readonly complete: boolean
  /** Descendants were looked for up to this position. */
  readonly searchedTo: bigint
}

export interface TraceOptions {
  /** Look for descendants in so many positions after the event. Default: up to the end of the log. */
  readonly within?: number | undefined
}

/** Events of one correlation that are read after the event, to be sorted out in memory. */
const MOST = 10_000
/** Ancestors are read one by one, by their ids; `log.maxDepth` keeps chains far shorter. */
const MOST_ANCESTORS = 1_000

export async function traceEvents(db: Queryable, id: string, { within }: TraceOptions = {}): Promise<EventTrace> {
  const row = await selectEvent(db, id)
  if (row === undefined) {
    throw new AftercommitError('EVENT_NOT_FOUND', `There is no event with the id ${JSON.stringify(id)} in the log.`)
  }
  const event = toEvent(row)
  const { correlationId } = event.metadata
  const head = await selectHead(db)
  const last = within === undefined ? head : event.position + BigInt(within)
  const searchedTo = last < head ? last : head
  if (correlationId === null) return { event, ancestors: [], descendants: [], complete: true, searchedTo }
  const [ancestors, later] = await Promise.all([
    selectAncestors(db, event),
    // An effect comes after its cause, unless both were given their causes by hand in one circle.
    selectCorrelated(db, correlationId, { limit: MOST + 1, after: event.position, upTo: searchedTo }),
  ])
  const complete = later.length <= MOST
  return { event, ancestors, descendants: descendantsOf(event, later.slice(0, MOST)), complete, searchedTo }
}

/** In position order. Nothing is indexed by correlation, so the log is read from `after` on. */
export async function selectCorrelated(
  db: Queryable,
  correlationId: string,
  { limit, after = 0n, upTo }: { limit: number; after?: bigint | undefined; upTo?: bigint | undefined },
): Promise<AnyEvent[]> {
  const rows = await readThrough(db, { after, upTo: upTo ?? (await selectHead(db)), correlationId, limit })
  return rows.map(toEvent)
}

async function selectAncestors(db: Queryable, event: AnyEvent): Promise<AnyEvent[]> {
  const ancestors: AnyEvent[] = []
  const seen = new Set([event.id])
  let causationId = event.metadata.causationId
  while (causationId !== null && !seen.has(causationId) && ancestors.length < MOST_ANCESTORS) {
    seen.add(causationId)
    const row = await selectEvent(db, causationId)
    if (row === undefined) break
    const cause = toEvent(row)
    ancestors.unshift(cause)
    causationId = cause.metadata.causationId
  }
  return ancestors
}

/** One pass in position order finds them all. */
function descendantsOf(event: AnyEvent, later: readonly AnyEvent[]): AnyEvent[] {
  const reached = new Set([event.id])
  return later.filter(({ id, metadata: { causationId } }) => {
    const follows = causationId !== null && reached.has(causationId) && id !== event.id
    if (follows) reached.add(id)
    return follows
  })
}
