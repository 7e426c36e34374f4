/** One observer at one event: its reactions, and what they did. */
import { createHash } from 'node:crypto'
import type { Scope } from '../conditions/index.ts'
import type { Reaction, ReactionEnd } from '../delivery/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Clock, Logger, ThrottledLog } from '../runtime/index.ts'
import type { Leftovers } from '../subscriptions/index.ts'
import type { ActionResult } from './action.ts'
import type { ObserverConfig } from './config/index.ts'
import { type ActionRecord, failed, kept, succeeded, toRunRecord } from './run-record.ts'
import type { RunningAction } from './running-action.ts'

export interface ObserverRunParts {
  readonly clock: Clock
  readonly logger: Logger
  /** For failures: the first of a kind at once, then one line a minute with their number. */
  readonly logRepeatedly: ThrottledLog
  readonly tellsDetails: boolean
  /** Whether runs without a problem are kept as well. */
  readonly recordsAll: boolean
  readonly measure: (type: string, outcome: 'success' | 'failure', durationMs: number) => void
}

/** What was caught up on after this long gives way to what is new. */
const OLD_MS = 60_000

export class ObserverRun {
  /** How the reaction before ended. */
  lastOutcome: ReactionEnd['outcome'] = 'success'
  readonly #parts: ObserverRunParts
  readonly #observer: ObserverConfig
  readonly #event: AnyEvent
  readonly #scope: Scope
  readonly #conditionError: unknown
  readonly #isSuspect: boolean
  readonly #startedMs: number
  readonly #records: ActionRecord[] = []
  #isProblem = false
  #keyError: unknown

  /** `conditionError`: why it is not known whether anything should be done. `isSuspect`: see `Reaction.suspect`. */
  constructor(
    parts: ObserverRunParts,
    observer: ObserverConfig,
    event: AnyEvent,
    scope: Scope,
    conditionError: unknown,
    isSuspect: boolean,
  ) {
    this.#parts = parts
    this.#observer = observer
    this.#event = event
    this.#scope = scope
    this.#conditionError = conditionError
    this.#isSuspect = isSuspect
    this.#startedMs = parts.clock.monotonic()
  }

  /** `followers`: actions that follow this one, should it become a row. */
  reactionOf(action: RunningAction, followers: readonly RunningAction[] = []): Reaction {
    const event = this.#event
    const next = followers.map(({ config }) => config.name)
    let result: ActionResult | undefined
    const key = this.#keyOf()
    return {
      work: action.work,
      event,
      owner: action.owner,
      destination: action.destination,
      tenant: event.tenant ?? '',
      key,
      priority: this.#parts.clock.now().getTime() - event.recordedAt.getTime() > OLD_MS ? -1 : 0,
      followers,
      // Without its key it must not become a row, which would be done without order.
      suspect: this.#isSuspect && this.#keyError === undefined,
      run: (context) => {
        const obstacle = this.#conditionError ?? this.#keyError
        if (obstacle !== undefined) throw obstacle
        const acted = action.act(event, this.#scope, 1, context)
        if (!(acted instanceof Promise)) {
          result = acted
          return undefined
        }
        return acted.then((done) => {
          result = done
        })
      },
      payload: () => action.payload(event, { check: this.#conditionError !== undefined, next }),
      afterDeath: (error) => action.afterDeath(event, { key, next, check: this.#conditionError !== undefined }, error),
      onEnd: (end) => this.#ended(action, end, result),
    }
  }

  /** Leaves the run record, if it is to be kept. */
  finish(left: Leftovers): void {
    const { recordsAll, clock } = this.#parts
    if (!recordsAll && !this.#isProblem) return
    const tookMs = clock.monotonic() - this.#startedMs
    left.runs.push(toRunRecord(this.#event, this.#observer.name, 1, this.#records, tookMs))
  }

  #ended({ config }: RunningAction, { outcome, error }: ReactionEnd, result: ActionResult | undefined): void {
    const { clock, logger, logRepeatedly, measure, tellsDetails, recordsAll } = this.#parts
    this.lastOutcome = outcome
    if (outcome === 'success') {
      if (result) measure(config.type, 'success', result.durationMs)
      if (tellsDetails) logger.debug(this.#fieldsOf(config.name), 'action succeeded')
      if (recordsAll && result) this.#records.push(succeeded(config.name, result))
      return
    }
    this.#isProblem = true
    if (outcome === 'kept') {
      this.#records.push(kept(config.name, config.type))
      return
    }
    const tookMs = clock.monotonic() - this.#startedMs
    measure(config.type, 'failure', tookMs)
    const kind = `${this.#observer.name}/${config.name} ${(error as { code?: unknown } | null)?.code ?? ''}`
    logRepeatedly('error', kind, { ...this.#fieldsOf(config.name), err: error }, 'action failed')
    this.#records.push(failed(config.name, config.type, outcome, error, tookMs))
  }

  /** What order goes by; null for none. An expression without a value is an order of its own. */
  #keyOf(): string | null {
    const { orderBy, compiled } = this.#observer
    if (orderBy === null) return null
    if (compiled.orderBy === null) return this.#event.key
    try {
      const value = compiled.orderBy.evaluate(this.#scope)
      return shorten(typeof value === 'string' ? value : String(value ?? ''))
    } catch (error) {
      // The failure of this observer at this event, and of nothing else.
      this.#keyError = error
      return null
    }
  }

  #fieldsOf(action: string): Record<string, unknown> {
    return { ...fieldsOf(this.#event), observer: this.#observer.name, action }
  }
}

/** A key is part of indexes, which hold no more than 2,700 bytes. */
function shorten(key: string): string {
  return key.length <= 500 ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`
}

/** What every line about an event says; never the payload or the user. */
export function fieldsOf(event: AnyEvent): Record<string, unknown> {
  return {
    event_id: event.id,
    event_type: event.type,
    correlation_id: event.metadata.correlationId,
    trace_id: event.traceId,
  }
}
