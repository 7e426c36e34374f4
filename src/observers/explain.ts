/**
 * Why an event had the consequences it had, and why not others: every observer that was in force at its position, asked
 * again with the rule of that time, and everything that is kept of what it did. Nothing is sent and nothing is written.
 * The answer shows values of the payload: it is for the person who asks, and not for a log.
 */
import { type Scope, scopeOf } from '../conditions/index.ts'
import type { DeadLetter, DeadLetters } from '../dead-letters/index.ts'
import type { Deliveries, DeliveryRecord } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import type { AnyEvent, Log } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { idempotencyKeyOf, type Preview } from './action.ts'
import type { ObserverConfig } from './config/index.ts'
import { type ActionState, attemptsAt, decideState, type ExplainedAttempt, isOpen } from './explain-action.ts'
import { type Candidate, type Since, toCandidates } from './explain-candidates.ts'
import { type Judgement, judge } from './explain-rule.ts'
import { type StoredRun, selectCheckpoint, selectDeliveriesOf, selectRuns, selectStarts } from './explain-statements.ts'
import { selectVersionsAt } from './registry-statements.ts'

export interface EventExplanation {
  readonly event: AnyEvent
  /** How far observers have come; null when none was ever in force. */
  readonly checkpoint: bigint | null
  /** The event could not be handed to observers at all. */
  readonly letter: DeadLetter | null
  /** Those that act first. */
  readonly observers: readonly ExplainedObserver[]
}

export interface ExplainedObserver extends Judgement {
  readonly observer: string
  /** Null: the default group. */
  readonly group: string | null
  /** Which version of it was in force; null when none was. */
  readonly version: number | null
  /** What became of that version since. */
  readonly since: Since
  readonly on: readonly string[]
  readonly entity: string | null
  readonly condition: string | null
  readonly actions: readonly ExplainedAction[]
}

export interface ExplainedAction {
  readonly name: string
  readonly type: string
  readonly state: ActionState
  /** It sees events above this position; null when it was never in force. */
  readonly start: bigint | null
  readonly attempts: readonly ExplainedAttempt[]
  /** What is still to be done, and when. */
  readonly delivery: DeliveryRecord | null
  readonly letter: DeadLetter | null
  /** What the configuration of this process would send now; null when it has no such action, or it would not act. */
  readonly preview: Preview | { readonly error: string } | null
}

export interface ExplainParts {
  readonly database: Database
  readonly log: Pick<Log, 'get'>
  readonly deliveries: Pick<Deliveries, 'list'>
  readonly deadLetters: Pick<DeadLetters, 'list'>
  /** The subscription of this process's group. */
  readonly subscription: string
  /** Whether the reader of a group has finished the event. Default: by the checkpoint of \`subscription\`. */
  readonly isReached?: (group: string | undefined) => boolean
  /** What this process would do. */
  readonly configs: readonly ObserverConfig[]
  /** The variables that conditions and templates may read. */
  readonly env: Readonly<Record<string, string>>
}

const LATEST = 2n ** 63n - 1n

export async function explainEvent(id: string, parts: ExplainParts): Promise<EventExplanation> {
  const { database, configs } = parts
  const event = await parts.log.get(id)
  if (event === undefined) throw notFound(id)
  const [then, now, starts, runs, checkpoint, letters] = await Promise.all([
    selectVersionsAt(database, event.position),
    selectVersionsAt(database, LATEST),
    selectStarts(database),
    selectRuns(database, event.id),
    selectCheckpoint(database, parts.subscription),
    parts.deadLetters.list({ eventId: event.id, limit: 1_000 }),
  ])
  const candidates = toCandidates(then, now, configs)
  const owners = candidates.flatMap(({ observer, rule }) => rule.actions.map(({ name }) => `${observer}/${name}`))
  const facts: Facts = {
    event,
    scope: scopeOf(event, parts.env),
    isReached: parts.isReached ?? (() => checkpoint !== undefined && checkpoint >= event.position),
    starts,
    runs,
    deliveries: await findDeliveries(event.id, owners, parts),
    letters: letters.filter(({ kind }) => kind === 'action'),
  }
  return {
    event,
    checkpoint: checkpoint ?? null,
    letter: letters.find(({ kind, owner }) => kind === 'subscription' && owner === parts.subscription) ?? null,
    observers: candidates.map((candidate) => explainObserver(candidate, facts)).sort(byVerdict),
  }
}

interface Facts {
  readonly event: AnyEvent
  readonly scope: Scope
  readonly isReached: (group: string | undefined) => boolean
  readonly starts: ReadonlyMap<string, bigint>
  readonly runs: readonly StoredRun[]
  readonly deliveries: readonly DeliveryRecord[]
  readonly letters: readonly DeadLetter[]
}

function explainObserver(candidate: Candidate, facts: Facts): ExplainedObserver {
  const { observer, rule, version, since } = candidate
  const judgement = judge(rule, facts.event, facts.scope)
  const told = since === 'added' ? cameLater(judgement, candidate.from) : judgement
  const actions: ExplainedAction[] = []
  for (const { name, type } of rule.actions) {
    const isBehind = rule.sequential && actions.some(({ state }) => isOpen(state))
    actions.push(explainAction({ name, type, isBehind, isAsked: ASKED.has(told.verdict) }, candidate, facts))
  }
  const { on, entity, condition, group = null } = rule
  return { observer, group, version, since, on, entity, condition, ...told, actions }
}

/** A condition that cannot be evaluated leads to a dead letter of each action. */
const ASKED: ReadonlySet<Judgement['verdict']> = new Set(['matched', 'condition_error'])

/** Events of other types are none of its business, whenever it began. */
function cameLater(judgement: Judgement, from: bigint | null): Judgement {
  if (judgement.verdict === 'type' || judgement.verdict === 'entity') return judgement
  const began = from === null ? 'No process has started it yet.' : `It is in force above position ${from}.`
  return { ...judgement, verdict: 'not_in_force', reason: `${began} It was not asked about this event.` }
}

function explainAction(
  { name, type, isBehind, isAsked }: { name: string; type: string; isBehind: boolean; isAsked: boolean },
  { observer, config, rule }: Candidate,
  { event, scope, isReached, starts, runs, deliveries, letters }: Facts,
): ExplainedAction {
  const owner = `${observer}/${name}`
  const attempts = attemptsAt(runs, observer, name)
  const delivery = deliveries.find((one) => one.name === owner) ?? null
  const letter = letters.find((one) => one.owner === owner) ?? null
  const state = decideState({ isAsked, isReached: isReached(rule.group), isBehind, attempts, delivery, letter })
  const preview = config === undefined ? null : previewOf(config, name, event, scope)
  return { name, type, state, start: starts.get(owner) ?? null, attempts, delivery, letter, preview }
}

function previewOf(config: ObserverConfig, name: string, event: AnyEvent, scope: Scope): ExplainedAction['preview'] {
  const prepared = config.actions.find((action) => action.name === name)?.prepared
  if (!prepared || judge(config, event, scope).verdict !== 'matched') return null
  try {
    return prepared.preview({ event, scope, idempotencyKey: idempotencyKeyOf(event.id, config.name, name) })
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

async function findDeliveries(
  eventId: string,
  owners: readonly string[],
  { database, deliveries }: ExplainParts,
): Promise<DeliveryRecord[]> {
  const ids = owners.length === 0 ? [] : await selectDeliveriesOf(database, eventId, owners)
  return ids.length === 0 ? [] : deliveries.list({ ids, limit: 1_000 })
}

function byVerdict(one: ExplainedObserver, other: ExplainedObserver): number {
  const rank = ({ verdict }: ExplainedObserver) => ORDER.indexOf(verdict)
  return rank(one) - rank(other) || (one.observer < other.observer ? -1 : 1)
}

const ORDER: readonly Judgement['verdict'][] = [
  'matched',
  'condition_error',
  'unreadable',
  'field_absent',
  'condition_false',
  'not_in_force',
  'entity',
  'type',
]

function notFound(id: string): AftercommitError {
  return new AftercommitError(
    'EVENT_NOT_FOUND',
    `There is no event with the id ${JSON.stringify(id)}, so there is nothing to explain: it was never committed, or ` +
      'retention has removed it. Find it with: aftercommit events list',
  )
}
