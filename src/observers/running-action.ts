/**
 * One action of one observer, as it runs: the first attempt with the event at hand, later ones from a row that holds a
 * copy of it. A row is rendered again with the configuration in force; ids and idempotency keys stay.
 */
import { type Scope, scopeOf } from '../conditions/index.ts'
import {
  type Delivering,
  type Delivery,
  decideOutcome,
  type NewDelivery,
  type RunContext,
  type Work,
} from '../delivery/index.ts'
import { type EventDefinitions, fromWire, toWire, type WireEvent } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { type Abortable, type Clock, LazySignal, messagingAttributes, type Telemetry } from '../runtime/index.ts'
import type { LeftAlert } from '../subscriptions/index.ts'
import { type ActionRequest, type ActionResult, idempotencyKeyOf } from './action.ts'
import type { Alerts } from './alerts.ts'
import type { ActionConfig, ObserverConfig } from './config/index.ts'
import { ObserverError } from './observer-error.ts'
import { type ActionRecord, failed, type RunRecord, succeeded, toRunRecord } from './run-record.ts'

export interface ActingParts {
  readonly database: Pick<Database, 'transaction'>
  readonly clock: Clock
  readonly delivering: Pick<Delivering, 'add'>
  readonly definitions: EventDefinitions | undefined
  readonly env: Readonly<Record<string, string>>
  /** What becomes of a later attempt. */
  readonly record: (record: RunRecord) => Promise<void> | undefined
  readonly measure: (type: string, outcome: 'success' | 'failure', durationMs: number) => void
  readonly alerts: Pick<Alerts, 'afterDeath' | 'raise'>
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
}

/** What a row of an action holds. */
interface ActionPayload {
  readonly event: WireEvent
  /** The condition could not be evaluated: it is asked again before anything is done. */
  readonly check?: boolean
  /** Actions that start when this one is over, in order. */
  readonly next?: readonly string[]
}

export interface RunningAction {
  readonly config: ActionConfig
  /** Events at or below it are not this action's. Known for certain once the configuration is in force. */
  start: bigint
  readonly work: Work
  readonly owner: string
  readonly destination: string
  /** One attempt; without a promise when it is done at once. */
  act(
    event: AnyEvent,
    scope: Scope,
    attempt: number,
    context: Pick<RunContext, 'signal'>,
  ): ActionResult | Promise<ActionResult>
  /** The next action of its sequence and the alert that follow when the action is given up. */
  afterDeath(event: AnyEvent, following: Following, error: unknown): AfterDeath
  payload(event: AnyEvent, words?: { check?: boolean; next?: readonly string[] }): ActionPayload
}

/** Actions limit themselves; this ends one that does not. */
const LONGEST_MS = 600_000

export function createRunningAction(
  observer: ObserverConfig,
  config: ActionConfig,
  start: bigint,
  parts: ActingParts,
  sibling: (action: string) => RunningAction | undefined,
): RunningAction {
  const prepared = config.prepared!
  const owner = `${observer.name}/${config.name}`
  // Limits of an observer take the place of those of where it sends to.
  const isLimited = observer.concurrency !== null || observer.rate !== null
  const destination = isLimited ? limitedDestination(observer.name) : (prepared.destination ?? '')

  const act: RunningAction['act'] = (event, scope, attempt, context) => {
    const request = new Request(event, scope, observer.name, config.name, attempt, context)
    const { tracing } = parts
    if (tracing === undefined) return prepared.run(request)
    const { traceparent } = event.metadata
    const attributes = messagingAttributes('attempt', [event], owner)
    return tracing.span(`attempt ${owner}`, attributes, traceparent === null ? [] : [traceparent], () =>
      prepared.run(request),
    )
  }

  async function run(delivery: Delivery, context: RunContext): Promise<void> {
    const { event: wire, check = false } = delivery.payload as ActionPayload
    const event = liftEvent(parts.definitions, fromWire(wire) as AnyEvent)
    const scope = scopeOf(event, parts.env)
    if (check && !holds(observer, scope)) return
    const startedMs = parts.clock.monotonic()
    let record: ActionRecord
    try {
      const result = await act(event, scope, delivery.attempt, context)
      record = succeeded(config.name, result)
    } catch (error) {
      const outcome = decideOutcome({ error, attempt: delivery.attempt }, config.retry).kind
      const tookMs = parts.clock.monotonic() - startedMs
      parts.measure(config.type, 'failure', tookMs)
      await parts.record(
        toRunRecord(
          event,
          observer.name,
          delivery.attempt,
          [failed(config.name, config.type, outcome, error, tookMs)],
          tookMs,
        ),
      )
      throw error
    }
    parts.measure(config.type, 'success', record.duration_ms)
    await parts.record(toRunRecord(event, observer.name, delivery.attempt, [record], record.duration_ms))
    const next = nextDelivery(event, { key: delivery.key, next: nextOf(delivery), check: false })
    if (!next) return
    await parts.database.transaction(
      async (tx) => {
        await context.complete(tx)
        await parts.delivering.add(tx, [next])
      },
      { isolation: 'read committed' },
    )
  }

  /** The next of a sequence becomes a row with the end of the one before. */
  function nextDelivery(event: AnyEvent, { key, next, check }: Following): NewDelivery | undefined {
    // An action that was removed meanwhile does not end the sequence.
    const [following, ...rest] = next.flatMap((name) => sibling(name) ?? [])
    if (!following) return undefined
    return {
      kind: 'action',
      name: following.work.name,
      eventId: event.id,
      owner: following.owner,
      destination: following.destination,
      ...(key === null ? { tenant: event.tenant ?? '' } : { key, ordered: true }),
      payload: following.payload(event, { check, next: rest.map((one) => one.config.name) }),
    }
  }

  const afterDeath: RunningAction['afterDeath'] = (event, following, error) => ({
    next: nextDelivery(event, following),
    alert: parts.alerts.afterDeath(observer, error),
  })

  const work: Work = {
    kind: 'action',
    name: owner,
    retry: config.retry,
    timeoutMs: observer.timeoutMs ?? prepared.timeoutMs ?? LONGEST_MS,
    ...(observer.timeoutMs === null && prepared.toTimeout && { toTimeout: () => prepared.toTimeout!() }),
    discards: observer.onFailure === 'log',
    run,
    toEvent: ({ payload }) => fromWire((payload as ActionPayload).event),
    toLetterError(error, attempt) {
      // It did not fail: whether it did anything is not known.
      if ((error as { code?: unknown }).code === 'PROCESS_DIED') return error
      const isExhausted = attempt > 1 && decideOutcome({ error, attempt: 1 }, config.retry).kind === 'retry'
      return isExhausted ? exhausted(owner, attempt, error) : error
    },
    async onDead(tx, delivery, error) {
      const { event: wire, check = false } = delivery.payload as ActionPayload
      const event = fromWire(wire) as AnyEvent
      const { next, alert } = afterDeath(event, { key: delivery.key, next: nextOf(delivery), check }, error)
      await parts.alerts.raise(tx, alert)
      if (next) await parts.delivering.add(tx, [next])
    },
  }

  return {
    config,
    start,
    work,
    owner,
    destination,
    act,
    afterDeath,
    payload: (event, { check = false, next = [] } = {}) => ({
      event: toWire(event),
      ...(check && { check }),
      ...(next.length > 0 && { next }),
    }),
  }
}

export interface Following {
  readonly key: string | null
  readonly next: readonly string[]
  /** The condition is still to be asked. */
  readonly check: boolean
}

export interface AfterDeath {
  readonly next: NewDelivery | undefined
  readonly alert: LeftAlert | undefined
}

/** What came after a dead one has come already when it is tried again. */
function nextOf({ payload, redriven }: Delivery): readonly string[] {
  return redriven === true ? [] : ((payload as ActionPayload).next ?? [])
}

/** What an action is asked. The signal and the key are made when it looks at them. */
class Request implements ActionRequest {
  readonly event: AnyEvent
  readonly scope: Scope
  readonly observer: string
  readonly action: string
  readonly attempt: number
  readonly #context: Pick<RunContext, 'signal'>

  constructor(
    event: AnyEvent,
    scope: Scope,
    observer: string,
    action: string,
    attempt: number,
    context: Pick<RunContext, 'signal'>,
  ) {
    this.event = event
    this.scope = scope
    this.observer = observer
    this.action = action
    this.attempt = attempt
    this.#context = context
  }

  get createdAt(): Date {
    return this.event.recordedAt
  }

  get idempotencyKey(): string {
    return idempotencyKeyOf(this.event.id, this.observer, this.action)
  }

  get signal(): AbortSignal {
    return this.#context.signal
  }

  get abort(): Abortable | undefined {
    return this.#context instanceof LazySignal ? this.#context : undefined
  }
}

export function limitedDestination(observer: string): string {
  return `observer ${observer}`
}

/** Throws OB002 when it cannot be evaluated. */
function holds({ compiled: { condition } }: ObserverConfig, scope: Scope): boolean {
  if (condition === null) return true
  const verdict = condition.evaluate(scope)
  if ('error' in verdict && verdict.error) throw verdict.error
  return verdict.holds
}

function exhausted(owner: string, attempts: number, cause: unknown): ObserverError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new ObserverError(
    'OB013',
    `"${owner}" failed ${attempts} times and is not tried again. The last time: ${why}`,
    { cause },
  )
}
