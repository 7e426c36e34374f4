/**
 * Telling people that an observer failed: at most one message per observer and five minutes, with the number it stands
 * for. An alert is a delivery like any other, added in the transaction that gave the action up.
 */
import { scopeOf } from '../conditions/index.ts'
import type { Settings } from '../configuration/index.ts'
import type { Delivering, NewDelivery, Work } from '../delivery/index.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type Logger, parseRetry } from '../runtime/index.ts'
import { type ActionType, idempotencyKeyOf } from './action.ts'
import { DEFAULT_RETRY, type ObserverConfig, type PrepareAction } from './config/index.ts'
import { countForAlert } from './registry-statements.ts'

export interface Alert {
  /** The name of an observer, or ALL_OBSERVERS. */
  readonly about: string
  readonly text: string
}

export interface Alerts {
  /** What this process must be able to do to send them. */
  readonly works: readonly Work[]
  /** In the transaction of what went wrong. Nothing when nobody is to be told, or was told a moment ago. */
  raise(db: Queryable, alert: Alert): Promise<void>
  /** Raises one for an action that was given up, where its observer says so. */
  onDead(tx: Queryable, observer: ObserverConfig, event: AnyEvent, error: unknown): Promise<void>
}

const EVERY_SECONDS = 300

export function createAlerts(
  { failureAlerts: { slack, email } }: Settings,
  {
    actionTypes,
    prepare,
    delivering,
    logger,
    count = countForAlert,
  }: {
    actionTypes: ReadonlyMap<string, ActionType>
    prepare: PrepareAction
    delivering: Pick<Delivering, 'add'>
    logger: Logger
    count?: typeof countForAlert
  },
): Alerts {
  const channels = [
    ...(slack === null ? [] : [{ type: 'slack', config: { channel: slack, message: MESSAGE } }]),
    ...(email === null ? [] : [{ type: 'email', config: { to: email, subject: SUBJECT, text: MESSAGE } }]),
  ]
  const works = channels.map(({ type, config }) => toWork(actionTypes.get(type)!, config, prepare))

  const raise: Alerts['raise'] = async (db, { about, text }) => {
    if (works.length === 0) return
    const failures = await count(db, about, EVERY_SECONDS)
    if (failures === null) return
    const payload = { about, text, count: failures, at: new Date().toISOString() }
    const deliveries: NewDelivery[] = works.map(({ name }) => ({ kind: 'action', name, owner: name, payload }))
    await delivering.add(db, deliveries)
    logger.warn({ observer: about, count: failures }, 'alert sent')
  }

  return {
    works,
    raise,
    async onDead(tx, { name, onFailure }, _, error) {
      if (onFailure !== 'alert') return
      await raise(tx, { about: name, text: error instanceof Error ? error.message : String(error) })
    },
  }
}

/** No observer can have a name in parentheses. */
const ALERTS = '(alerts)'
/** What an alert about the backlog is about: an observer named `observers` has alerts of its own. */
export const ALL_OBSERVERS = '(observers)'

const SUBJECT = 'aftercommit: {{ about }} failed'
const MESSAGE = '{{ about }}: {{ text }}{% if count > 1 %} ({{ count }} times since the last message){% endif %}'

function toWork(type: ActionType, config: object, prepare: PrepareAction): Work {
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
