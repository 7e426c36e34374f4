/** Which connections an auth event ends. */
import { toSystemEvent } from '../hooks/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Identity } from './feed.ts'

/** Names of the events that end connections; for reading no others. */
export const REVOKING = ['auth.session_revoked', 'auth.token_revoked', 'auth.logout'] as const

const revoking: ReadonlySet<string> = new Set(REVOKING)

/** Whom an event locks out; undefined for every other event. */
export function revokedBy(event: AnyEvent): Identity | undefined {
  if (!revoking.has(event.type)) return undefined
  const auth = toSystemEvent(event)
  if (auth.about !== 'auth') return undefined
  const { sessionId, tokenId, userId } = auth
  // One session of a user leaves the others alone; an event that names only the user means all of them.
  if (sessionId === null && tokenId === null) return { user: userId ?? undefined }
  return { session: sessionId ?? undefined, token: tokenId ?? undefined }
}

export function concerns(revoked: Identity, { user, session, token }: Identity): boolean {
  return (
    isSame(revoked.session, session) ||
    isSame(revoked.token, token) ||
    // With neither session nor token it is the user as a whole.
    (revoked.session === undefined && revoked.token === undefined && isSame(revoked.user, user))
  )
}

function isSame(revoked: string | undefined, own: string | undefined): boolean {
  return revoked !== undefined && revoked === own
}
