/**
 * Remembers in every process which tokens and sessions were revoked. At its start it reads the revocations that the log
 * holds; until it has caught up the instance is not ready, and asking is an error rather than a guess.
 */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Clock, type Duration, systemClock, toMs } from '../runtime/index.ts'
import { authFieldsOf } from './auth.ts'
import type { HookOptions, HookStartContext } from './hook.ts'

export interface RevocationHookOptions extends Pick<HookOptions, 'enabled'> {
  /** `revocation` unless told. */
  readonly name?: string | undefined
  /** How long a revoked id is refused: at least as long as a token lives; 30 days unless told. */
  readonly remember?: Duration | undefined
  /** Revoked ids from a place of your own, read at the start beside the log. */
  readonly load?: ((context: { signal: AbortSignal }) => Iterable<string> | Promise<Iterable<string>>) | undefined
  /** Where ids are kept; memory unless told. `add` is also the place to drop a cached token or session. */
  readonly store?: RevocationStore | undefined
  readonly clock?: Clock | undefined
}

export interface RevocationStore {
  /** Called once per id, in every process. */
  add(id: string, revokedAt: Date): unknown
  has(id: string): boolean
}

export interface RevocationHook extends HookOptions {
  /** Whether a token or session was revoked. Throws `NOT_READY` until everything revoked is known. */
  isRevoked(tokenOrSessionId: string): boolean
}

const TYPES = ['auth.token_revoked', 'auth.session_revoked', 'auth.logout'] as const

export function revocationHook(options: RevocationHookOptions = {}): RevocationHook {
  const { name = 'revocation', remember = '30d', load, clock = systemClock, enabled } = options
  const rememberMs = toMs(remember, `${name}.remember`)
  const store = options.store ?? memoryStore(rememberMs, clock)
  let ready = false

  async function take(event: AnyEvent): Promise<void> {
    const { tokenId, sessionId } = authFieldsOf(event)
    for (const id of [tokenId, sessionId]) if (id !== null) await store.add(id, event.recordedAt)
  }

  async function start({ signal, history }: HookStartContext): Promise<void> {
    const since = new Date(clock.now().getTime() - rememberMs)
    for await (const event of history({ types: TYPES, since })) await take(event)
    for (const id of (await load?.({ signal })) ?? []) await store.add(id, clock.now())
  }

  return {
    name,
    scope: 'instance',
    types: TYPES,
    enabled,
    // What was not taken in would be a token that is still accepted.
    untilDone: true,
    retry: { initialDelay: '100ms', maxDelay: '2s' },
    handle: take,
    onStart: start,
    onReady(now) {
      ready = now
    },
    isRevoked(id) {
      if (ready) return store.has(id)
      throw new AftercommitError(
        'NOT_READY',
        `Hook "${name}" does not know yet what was revoked, so nobody can say whether a token is valid. Refuse it, and ` +
          'send no requests here until the instance is ready.',
      )
    },
  }
}

/** Ids in the order they were revoked, so that the oldest go first. */
function memoryStore(rememberMs: number, clock: Clock): RevocationStore {
  const revoked = new Map<string, number>()
  return {
    add(id, revokedAt) {
      const forgetBefore = clock.now().getTime() - rememberMs
      for (const [old, at] of revoked) {
        if (at >= forgetBefore) break
        revoked.delete(old)
      }
      revoked.delete(id)
      revoked.set(id, revokedAt.getTime())
    },
    has: (id) => revoked.has(id),
  }
}
