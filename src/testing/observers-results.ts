/** What an executor of observers did: per event and observer, and in sum. Told from run records, as in production. */
import type { ActionRecord, EventOutcome, ObserverConfig, RunRecord } from '../observers/index.ts'

export interface ObservedAction {
  readonly action: string
  readonly actionType: string
  readonly success: boolean
  readonly message: string
  readonly durationMs: number
  /** `dead`: out of attempts. `kept`, `retry`: it waits behind an earlier event of its key that is a dead letter. */
  readonly outcome: ActionRecord['outcome']
  readonly attempts: number
  /** Of the error, where it has one. */
  readonly code?: string
}

/** By the name of the observer; those with nothing to do are not in it. Actions in the order they were declared. */
export type ObservedActions = Readonly<Record<string, readonly ObservedAction[]>>

/** Of everything that was processed so far. */
export interface ExecutionSummary {
  readonly events: number
  /** Events that no observer is about. */
  readonly unmatched: number
  /** Observers that an event concerned, by what their condition said. Without one it holds. */
  readonly conditions: { readonly held: number; readonly notMet: number; readonly failed: number }
  readonly succeeded: number
  /** Actions that were given up. */
  readonly failed: number
  /** Attempts after a first one. */
  readonly retries: number
}

export interface Tally {
  count(outcome: EventOutcome): void
  add(run: RunRecord): void
  /** What was added about this event since it was begun. */
  take(eventId: string, observers: readonly ObserverConfig[]): ObservedActions
  readonly summary: ExecutionSummary
}

export function createTally(): Tally {
  const counts = { matched: 0, unmatched: 0, condition_false: 0, condition_error: 0 }
  const sums = { events: 0, succeeded: 0, failed: 0, retries: 0 }
  let runs: RunRecord[] = []
  return {
    count(outcome) {
      counts[outcome]++
    },
    add(run) {
      runs.push(run)
      for (const { outcome } of run.actions) {
        if (outcome === 'success') sums.succeeded++
        if (outcome === 'dead') sums.failed++
        if (run.attempt > 1) sums.retries++
      }
    },
    take(eventId, observers) {
      sums.events++
      const own = runs.filter(({ event_id }) => event_id === eventId)
      runs = []
      return Object.fromEntries(
        observers.flatMap((config) => {
          const actions = toObserved(config, own)
          return actions.length === 0 ? [] : [[config.name, actions]]
        }),
      )
    },
    get summary() {
      const { matched: held, condition_false: notMet, condition_error: failed, unmatched } = counts
      return { ...sums, unmatched, conditions: { held, notMet, failed } }
    },
  }
}

function toObserved({ name, actions }: ObserverConfig, runs: readonly RunRecord[]): ObservedAction[] {
  const last = new Map<string, { record: ActionRecord; attempts: number }>()
  for (const { observer, attempt, actions: records } of runs) {
    if (observer === name) for (const record of records) last.set(record.name, { record, attempts: attempt })
  }
  return actions.flatMap((action) => {
    const found = last.get(action.name)
    return found === undefined ? [] : [toAction(found.record, found.attempts)]
  })
}

function toAction({ name, type, outcome, message, code, duration_ms }: ActionRecord, attempts: number): ObservedAction {
  return {
    action: name,
    actionType: type,
    success: outcome === 'success',
    message,
    durationMs: duration_ms,
    outcome,
    attempts: outcome === 'kept' ? 0 : attempts,
    ...(code !== undefined && { code }),
  }
}
