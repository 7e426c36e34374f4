/** Puts the receipt of one event together. A few statements, whatever the number of reactions. */
import type { DeadLetter, DeadLetters } from '../dead-letters/index.ts'
import type { Deliveries } from '../delivery/index.ts'
import type { AnyEvent, EventTrace, Log } from '../log/index.ts'
import type { ExplainedObserver } from '../observers/index.ts'
import type { Database } from '../postgres/index.ts'
import { decideSubscription } from './decide-subscription.ts'
import { type DeliveryFacts, decideAction, decideWork } from './decide-work.ts'
import { selectNow, selectObserverReaders, selectSubscriptionFacts } from './facts-statements.ts'
import { findOpen, isOpen } from './open-items.ts'
import type { CausedEvent, ObserverPart, Receipt, WorkPart } from './receipt.ts'
import { countReactions, sentenceOf } from './summary.ts'

export interface ReceiptParts {
  readonly database: Database
  readonly log: Pick<Log, 'get' | 'trace'>
  readonly deliveries: Pick<Deliveries, 'list' | 'destinations' | 'orphans'>
  readonly deadLetters: Pick<DeadLetters, 'list'>
}

/** Descendants are looked for in so many positions after the event; the receipt says where the search ended. */
const SEARCHED = 100_000
/** Descendants whose effects and timers are part of the receipt. */
const MOST_CAUSED = 1_000

const NOTES = [
  'Instance hooks and live feeds keep no checkpoint, so nothing says whether they got the event.',
  'Subscriptions, projections, relays and cluster hooks without a dead letter are told from their checkpoints: when they handled the event is not kept.',
]

export async function readReceipt(id: string, parts: ReceiptParts): Promise<Receipt> {
  const trace = await parts.log.trace(id, { within: SEARCHED })
  const { event } = trace
  const caused = toCaused(trace).slice(0, MOST_CAUSED)
  const askers = [event.id, ...caused.map((one) => one.id)]
  const [now, facts, rows, letters, destinations, orphans, observers] = await Promise.all([
    selectNow(parts.database),
    selectSubscriptionFacts(parts.database, event),
    parts.deliveries.list({ eventIds: askers, limit: 1_000 }),
    parts.deadLetters.list({ askedBy: askers, limit: 1_000 }),
    parts.deliveries.destinations(),
    parts.deliveries.orphans(),
    explainObservers(event, parts),
  ])
  const delivery: DeliveryFacts = {
    now,
    destinations: new Map(destinations.map((one) => [one.destination, one])),
    orphans: new Set(orphans.map(({ kind, name }) => `${kind} ${name}`)),
  }
  const subscriptions = facts.flatMap((fact) => decideSubscription(fact, event) ?? [])
  const found = {
    event,
    subscriptions,
    observers: observers.map((one) => toObserverPart(one, delivery)),
    work: toWork(rows, letters, delivery),
  }
  const counts = countReactions(found)
  const isSettled = ![...subscriptions, ...found.observers.flatMap(({ actions }) => actions), ...found.work].some(
    isOpen,
  )
  return {
    ...found,
    asOf: now,
    isSettled,
    sentence: sentenceOf(counts, isSettled),
    counts,
    open: findOpen(found),
    otherSubscriptions: facts.length - subscriptions.length,
    caused,
    complete: trace.complete && trace.descendants.length <= MOST_CAUSED,
    searchedTo: trace.searchedTo,
    notes: NOTES,
  }
}

/** Depth by causation: events come in the order of the log, so each follows its cause. */
function toCaused({ event, descendants }: EventTrace): CausedEvent[] {
  const depths = new Map([[event.id, 0]])
  return descendants.map(({ id, type, position, aggregateType, aggregateId, recordedAt, metadata }) => {
    const depth = (depths.get(metadata.causationId ?? '') ?? 0) + 1
    depths.set(id, depth)
    return { id, type, position, aggregateType, aggregateId, recordedAt, depth }
  })
}

/**
 * Observers as they were in force at the event. No configuration and no environment of this process takes part, so each
 * process answers the same. Loads the condition language, so it is imported when a receipt is asked for.
 */
async function explainObservers(
  event: AnyEvent,
  parts: ReceiptParts,
): Promise<(ExplainedObserver & { reader: string | null })[]> {
  const [{ explainEvent, subscriptionOf, DEFAULT_GROUP }, readers] = await Promise.all([
    import('../observers/index.ts'),
    selectObserverReaders(parts.database, event.position),
  ])
  if (readers.size === 0) return []
  const readerOf = (group: string | null | undefined) => readers.get(subscriptionOf(group ?? DEFAULT_GROUP))
  const { observers } = await explainEvent(event.id, {
    ...parts,
    subscription: subscriptionOf(DEFAULT_GROUP),
    configs: [],
    env: {},
    isReached: (group) => readerOf(group)?.isFinished ?? false,
  })
  return observers.map((one) => {
    const reader = readerOf(one.group)
    const where = reader === undefined ? null : `its observers have come to position ${reader.position}`
    return { ...one, reader: where }
  })
}

function toObserverPart(
  { reader, ...observer }: ExplainedObserver & { reader: string | null },
  facts: DeliveryFacts,
): ObserverPart {
  const asked = observer.actions.filter(({ state }) => state !== 'not_asked')
  const actions = asked.map((action) => decideAction(action, facts, reader))
  if (!READS_ENVIRONMENT.test(observer.condition ?? '')) return { ...observer, actions }
  // A process evaluated the condition with variables that no receipt knows: only what it led to is certain.
  const acted = actions.some(({ state }) => state !== 'unrecorded' && state !== 'not_yet')
  const reason = acted
    ? 'It acted. Its condition reads the environment of a process, so the values that decided are not kept.'
    : 'Its condition reads the environment of a process, so a receipt cannot tell whether it holds.'
  return { ...observer, verdict: acted ? 'matched' : 'environment', reason, parts: [], actions: acted ? actions : [] }
}

const READS_ENVIRONMENT = /\benv\b/

/** A delivery that was made again from a dead letter stands for both. */
function toWork(rows: readonly DeliveryRow[], letters: readonly DeadLetter[], facts: DeliveryFacts): WorkPart[] {
  const remade = new Set(rows.map(({ letter }) => letter))
  return [
    ...rows.filter(({ kind }) => kind !== 'action').map((row) => decideWork(row, row.eventId ?? '', facts)),
    ...letters
      .filter(({ id, kind }) => (kind === 'effect' || kind === 'timer') && !remade.has(id))
      .map((letter) => decideWork(letter, letter.event.metadata.causationId ?? '', facts)),
  ]
}

type DeliveryRow = Awaited<ReturnType<Deliveries['list']>>[number]
