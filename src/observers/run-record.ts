/** What an observer did for one event, as it is kept: no payload, no body, no secret. */
import type { AnyEvent } from '../log/index.ts'
import { parseTraceparent } from '../runtime/index.ts'
import type { ActionResult } from './action.ts'
import { ObserverError, type Received, type SentRequest } from './observer-error.ts'

export type ActionOutcome = 'success' | 'retry' | 'dead' | 'kept'

export interface ActionRecord {
  readonly name: string
  readonly type: string
  readonly outcome: ActionOutcome
  readonly message: string
  readonly code?: string
  readonly duration_ms: number
  readonly request?: SentRequest
  readonly response?: Received
}

export interface RunRecord {
  readonly event_id: string
  readonly position: string
  readonly observer: string
  readonly event_type: string
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly tenant: string | null
  readonly trace_id: string | null
  readonly attempt: number
  readonly actions: readonly ActionRecord[]
  readonly status: 'success' | 'partial' | 'failure'
  readonly duration_ms: number
}

export function toRunRecord(
  event: AnyEvent,
  observer: string,
  attempt: number,
  actions: readonly ActionRecord[],
  durationMs: number,
): RunRecord {
  const { traceparent } = event.metadata
  return {
    event_id: event.id,
    position: String(event.position),
    observer,
    event_type: event.type,
    aggregate_type: event.aggregateType,
    aggregate_id: event.aggregateId,
    tenant: event.tenant,
    trace_id: (traceparent !== null && parseTraceparent(traceparent)?.traceId) || null,
    attempt,
    actions,
    status: statusOf(actions),
    duration_ms: round(durationMs),
  }
}

function statusOf(actions: readonly ActionRecord[]): RunRecord['status'] {
  const good = actions.filter(({ outcome }) => outcome === 'success').length
  return good === actions.length ? 'success' : good === 0 ? 'failure' : 'partial'
}

export function succeeded(
  name: string,
  { actionType, message, durationMs, request, response }: ActionResult,
): ActionRecord {
  return {
    name,
    type: actionType,
    outcome: 'success',
    message,
    duration_ms: round(durationMs),
    ...(request && { request }),
    ...(response && { response }),
  }
}

export function failed(
  name: string,
  type: string,
  outcome: ActionOutcome,
  error: unknown,
  durationMs: number,
): ActionRecord {
  const { message, code } = error instanceof Error ? (error as Error & { code?: string }) : { message: String(error) }
  const detail = error instanceof ObserverError ? error.detail : {}
  return {
    name,
    type,
    outcome,
    message: message
      .slice(0, 500)
      // Whatever cannot be stored would cost the records of all that are written with it.
      .replaceAll('\u0000', '\ufffd')
      .replace(/\p{Surrogate}/gu, '\ufffd'),
    ...(code !== undefined && { code }),
    duration_ms: round(durationMs),
    ...detail,
  }
}

/** The first attempt could not begin: a row stands for it. */
export function kept(name: string, type: string): ActionRecord {
  return { name, type, outcome: 'kept', message: 'kept as a delivery', duration_ms: 0 }
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}
