/** What an audit keeps of an event: who did what to which thing, from where, and how it ended. Pure. */
import { baseName } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { authFieldsOf, authTypeOf } from './auth.ts'

export interface AuditRecord {
  /** That of the event, so that writing it twice can be noticed. */
  readonly id: string
  readonly position: bigint
  /** A user, a client acting for itself, or the system when nobody is named. */
  readonly actor: { readonly kind: 'user' | 'client' | 'system'; readonly id: string | null }
  /** `created`, `updated`, `deleted`, the name of an auth event, or the last part of the type. */
  readonly action: string
  readonly type: string
  readonly entity: string | null
  readonly entityId: string | null
  readonly version: number | null
  readonly outcome: 'success' | 'failure'
  readonly reason: string | null
  readonly ip: string | null
  readonly requestId: string | null
  readonly tenant: string | null
  readonly occurredAt: Date
}

export function toAuditRecord(event: AnyEvent): AuditRecord {
  const { metadata } = event
  const isAuth = authTypeOf(event.type) !== undefined
  const auth = isAuth ? authFieldsOf(event) : undefined
  const userId = metadata.userId ?? auth?.userId ?? null
  const clientId = auth?.clientId ?? textOf(metadata.client_id)
  return {
    id: event.id,
    position: event.position,
    actor: actorOf(userId, clientId),
    action: actionOf(event),
    type: event.type,
    entity: event.aggregateType,
    entityId: event.aggregateId,
    version: event.version,
    outcome: baseName(event.type).endsWith('_failed') || metadata.outcome === 'failure' ? 'failure' : 'success',
    reason: auth?.reason ?? textOf(metadata.reason),
    ip: auth?.ip ?? textOf(metadata.ip),
    requestId: textOf(metadata.request_id) ?? metadata.correlationId,
    tenant: event.tenant,
    occurredAt: event.occurredAt,
  }
}

export function actionOf(event: AnyEvent): string {
  const name = baseName(event.type)
  return authTypeOf(event.type) ?? (event.kind === 'custom' ? name.slice(name.lastIndexOf('.') + 1) : event.kind)
}

function actorOf(userId: string | null, clientId: string | null): AuditRecord['actor'] {
  if (userId !== null) return { kind: 'user', id: userId }
  return clientId === null ? { kind: 'system', id: null } : { kind: 'client', id: clientId }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
