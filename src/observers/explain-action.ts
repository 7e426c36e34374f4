/** What became of one action for one event, told from what is kept of it. Pure. */
import type { DeadLetter } from '../dead-letters/index.ts'
import type { DeliveryRecord } from '../delivery/index.ts'
import type { StoredRun } from './explain-statements.ts'
import type { Received, SentRequest } from './observer-error.ts'
import type { ActionRecord } from './run-record.ts'

/** One attempt, as it was recorded. */
export interface ExplainedAttempt {
  readonly attempt: number
  readonly at: Date
  readonly outcome: ActionRecord['outcome']
  readonly message: string
  readonly code: string | null
  readonly durationMs: number
  readonly request: SentRequest | null
  readonly response: Received | null
}

/**
 * done: it succeeded. waiting, running, scheduled, retrying, paused: a delivery stands for it. queued: it starts when the
 * one before is over. dead, redriving, discarded: a dead letter says so. given_up: it failed and was only logged.
 * not_yet: observers have not come to the event. not_asked: the observer does not act on it. unrecorded: nothing is
 * kept, as for a success where only problems are recorded, or for what happened longer ago than records are kept.
 */
export type ActionState =
  | 'done'
  | 'queued'
  | 'given_up'
  | 'not_yet'
  | 'not_asked'
  | 'unrecorded'
  | DeliveryRecord['state']
  | Exclude<DeadLetter['status'], 'resolved'>

export interface ActionFacts {
  /** Whether the observer acts on the event at all; a condition that failed counts. */
  readonly isAsked: boolean
  /** Whether observers have come to the event. */
  readonly isReached: boolean
  /** An earlier action of a sequence is not over. */
  readonly isBehind: boolean
  readonly attempts: readonly ExplainedAttempt[]
  readonly delivery: DeliveryRecord | null
  readonly letter: DeadLetter | null
}

export function decideState({ isAsked, isReached, isBehind, attempts, delivery, letter }: ActionFacts): ActionState {
  if (delivery !== null) return delivery.state
  if (letter !== null) return letter.status === 'resolved' ? 'done' : letter.status
  if (attempts.some(({ outcome }) => outcome === 'success')) return 'done'
  if (attempts.some(({ outcome }) => outcome === 'dead')) return 'given_up'
  if (!isAsked) return 'not_asked'
  if (isBehind) return 'queued'
  return isReached ? 'unrecorded' : 'not_yet'
}

/** Neither over nor given up: what follows in a sequence waits for it. */
export function isOpen(state: ActionState): boolean {
  return OPEN.has(state)
}

const OPEN: ReadonlySet<ActionState> = new Set(['waiting', 'running', 'scheduled', 'retrying', 'paused', 'queued'])

/** The attempts at one action. A record that a row stands for it is not one: the row or its end tells more. */
export function attemptsAt(runs: readonly StoredRun[], observer: string, action: string): ExplainedAttempt[] {
  return runs
    .filter((run) => run.observer === observer)
    .flatMap(({ attempt, at, actions }) =>
      actions
        .filter(({ name, outcome }) => name === action && outcome !== 'kept')
        .map((record) => toAttempt(record, attempt, at)),
    )
}

function toAttempt(record: ActionRecord, attempt: number, at: Date): ExplainedAttempt {
  const { outcome, message, code = null, duration_ms: durationMs, request = null, response = null } = record
  return { attempt, at, outcome, message, code, durationMs, request, response }
}
