/**
 * What happens to people's sessions and tokens, as events of the log: `auth.login`, `auth.token_revoked` and so on. They
 * travel like any other event, so a token revoked on one instance is refused on all of them.
 */
import { createHash } from 'node:crypto'
import { AftercommitError } from '../errors.ts'
import type { AnyEvent, EmitRequest } from '../log/index.ts'

export const AUTH_TYPES = [
  'login',
  'login_failed',
  'logout',
  'session_created',
  'session_revoked',
  'token_refreshed',
  'token_revoked',
] as const

export type AuthType = (typeof AUTH_TYPES)[number]

/** Ids, not bearer secrets: they are stored in the log as they are given. */
export interface AuthInput {
  readonly type: AuthType
  readonly userId?: string | undefined
  readonly clientId?: string | undefined
  readonly sessionId?: string | undefined
  readonly tokenId?: string | undefined
  readonly ip?: string | undefined
  readonly reason?: string | undefined
  readonly tenant?: string | undefined
}

/** What an auth event says of whom. */
export interface AuthFields {
  readonly userId: string | null
  readonly clientId: string | null
  readonly sessionId: string | null
  readonly tokenId: string | null
  readonly ip: string | null
  readonly reason: string | null
}

export function toAuthRequest(input: AuthInput): EmitRequest {
  const { type, userId, clientId, sessionId, tokenId, ip, reason, tenant } = input
  if (!AUTH_TYPES.includes(type))
    refuse(`There is no auth event "${String(type)}". Known are ${AUTH_TYPES.join(', ')}.`)
  for (const [name, value] of Object.entries({ userId, clientId, sessionId, tokenId, ip, reason })) {
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      refuse(`${name} of "auth.${type}" is not text.`)
  }
  // A revocation that names nothing would be taken for done and revoke nothing.
  if (type.endsWith('_revoked') && sessionId === undefined && tokenId === undefined) {
    refuse(`"auth.${type}" names neither a sessionId nor a tokenId. Give what is to be refused from now on.`)
  }
  const subject = sessionId ?? tokenId ?? userId ?? clientId
  return {
    type: `auth.${type}`,
    payload: { user_id: userId, client_id: clientId, session_id: sessionId, token_id: tokenId, ip, reason },
    ...(subject === undefined ? {} : { aggregate: { type: 'auth', id: fingerprint(subject) } }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(userId === undefined ? {} : { metadata: { userId } }),
  }
}

/** The auth type of an event of the log; undefined for every other event, and for names that nobody has given a meaning. */
export function authTypeOf(type: string): AuthType | undefined {
  const name = type.startsWith('auth.') ? type.slice('auth.'.length) : undefined
  return AUTH_TYPES.find((known) => known === name)
}

/** Rows written by plain SQL may lack anything. */
export function authFieldsOf({ payload, metadata }: AnyEvent): AuthFields {
  const text = (name: string) => {
    const value = typeof payload === 'object' && payload !== null ? Reflect.get(payload, name) : undefined
    return typeof value === 'string' && value !== '' ? value : null
  }
  return {
    userId: text('user_id') ?? metadata.userId,
    clientId: text('client_id'),
    sessionId: text('session_id'),
    tokenId: text('token_id'),
    ip: text('ip'),
    reason: text('reason'),
  }
}

/** Keys are printed, ids of sessions and users are not: order goes by what cannot be turned back into them. */
function fingerprint(subject: string): string {
  return createHash('sha256').update(subject).digest('hex').slice(0, 32)
}

function refuse(fault: string): never {
  throw new AftercommitError('BAD_EVENT', `${fault} Nothing was emitted.`)
}
