/**
 * Alerts say that an observer failed: at most one message per observer and five minutes, with the number of failures it
 * stands for. An alert is a delivery like any other, added in the transaction that gives the action up.
 */
import { scopeOf } from '../conditions/index.ts'
import type { Settings } from '../configuration/index.ts'
import { toErrorRecord } from '../dead-letters/index.ts'
import type { Work } from '../delivery/index.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type Logger, parseRetry } from '../runtime/index.ts'
import type { LeftAlert } from '../subscriptions/index.ts'
import { type ActionType, idempotencyKeyOf } from './action.ts'
import { DEFAULT_RETRY, type ObserverConfig, type PrepareAction } from './config/index.ts'
import { raiseAlert } from './registry-statements.ts'

export interface Alerts {
  /** Handlers of the deliveries that send alerts. */
  readonly works: readonly Work[]
  /** An alert about an observer, or ALL_OBSERVERS. Undefined without a channel to send it. */
  alert(about: string, text: string): LeftAlert | undefined
  /** The alert for an action that was given up, where its observer asks for one. */
  afterDeath(observer: ObserverConfig, error: unknown): LeftAlert | undefined
  /** Counts the failure and, if an alert is due, adds it in the caller's transaction. */
  raise(db: Queryable, alert: LeftAlert | undefined): Promise<void>
}

const EVERY_SECONDS = 300

export function createAlerts(
  { failureAlerts: { slack, email } }: Settings,
  {
    actionTypes,
    prepare,
    logger,
    raise = raiseAlert,
  }: {
    actionTypes: ReadonlyMap<string, ActionType>
    prepare: PrepareAction
    logger: Logger
    raise?: (db: Queryable, alert: LeftAlert) => Promise<void>
  },
): Alerts {
  const channels = [
    ...(slack === null ? [] : [{ type: 'slack', config: { channel: slack, message: MESSAGE } }]),
    ...(email === null ? [] : [{ type: 'email', config: { to: email, subject: SUBJECT, text: MESSAGE } }]),
  ]
  const works = channels.map(({ type, config }) => toWork(actionTypes.get(type)!, config, prepare, logger))

  function alert(about: string, text: string): LeftAlert | undefined {
    if (works.length === 0) return undefined
    return { about, text, channels: works.map(({ name }) => name), everySeconds: EVERY_SECONDS }
  }

  return {
    works,
    alert,
    afterDeath: ({ name, onFailure }, error) =>
      onFailure === 'alert' ? alert(name, toErrorRecord(error).message) : undefined,
    async raise(db, raised) {
      if (raised) await raise(db, raised)
    },
  }
}

/** No observer can have a name in parentheses. */
const ALERTS = '(alerts)'
/** The subject of an alert about the backlog: an observer named `observers` has alerts of its own. */
export const ALL_OBSERVERS = '(observers)'

const SUBJECT = 'aftercommit: {{ about }} failed'
const MESSAGE = '{{ about }}: {{ text }}{% if count > 1 %} ({{ count }} times since the last message){% endif %}'

function toWork(type: ActionType, config: object, prepare: PrepareAction, logger: Logger): Work {
  const prepared = prepare(type, config, { env: [], events: undefined })
  const name = `${ALERTS}/${type.type}`
  return {
    kind: 'action',
    name,
    retry: { ...parseRetry(DEFAULT_RETRY.service), jitter: 0.25 },
    timeoutMs: 120_000,
    async run(delivery, { signal }) {
      const event = toEvent(String(delivery.id), delivery.payload)
      await prepared.run({
        event,
        observer: 'alerts',
        action: type.type,
        attempt: delivery.attempt,
        idempotencyKey: idempotencyKeyOf(event.id, ALERTS, type.type),
        createdAt: delivery.createdAt,
        signal,
        scope: scopeOf(event, {}),
      })
      const { about, count } = delivery.payload as { about: string; count: number }
      logger.warn({ observer: about, count, channel: type.type }, 'alert sent')
    },
    toEvent: ({ id, payload }) => toEvent(String(id), payload),
  }
}

/** What templates see of an alert. It is in no log. */
function toEvent(id: string, payload: unknown): AnyEvent {
  const now = new Date()
  return new AftercommitEvent({
    id: `alert-${id}`,
    type: 'aftercommit.alert',
    position: 0n,
    aggregateType: null,
    aggregateId: null,
    version: null,
    payload,
    changes: null,
    previous: null,
    tenant: null,
    metadata: { correlationId: null, causationId: null, userId: null, traceparent: null, schemaVersion: 1, depth: 0 },
    occurredAt: now,
    recordedAt: now,
  }) as AnyEvent
}
