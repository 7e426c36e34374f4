/** Who connects, asked once per connection, whatever carries it. */
import type { AnyEvent } from '../log/index.ts'
import { type Clock, withTimeout } from '../runtime/index.ts'
import type { Feed, Identity } from './feed.ts'
import type { GraphqlSettings } from './graphql-options.ts'
import { Refusal } from './inbound-problem.ts'

/** What every subscription over a connection is opened with. */
export interface Connection {
  readonly transport: 'graphql-ws' | 'graphql-sse'
  readonly principal: unknown
  readonly tenant: string | undefined
  readonly identity: Identity | undefined
  /** Revocations above it count, also for what is subscribed to much later. */
  readonly since: bigint
  readonly allows: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined
  readonly signal: AbortSignal
  /** Called when a subscription was ended because its client was revoked. */
  onRevoked(): void
}

export type Admitted = Pick<Connection, 'principal' | 'tenant' | 'identity' | 'since' | 'allows'>

/** A client whose database is away is sent elsewhere rather than kept waiting. */
const READY_MS = 10_000

/** Throws a refusal: 401, 403, or 503 for whoever should come back. */
export async function admit(request: Request, settings: GraphqlSettings, feed: Feed, clock: Clock): Promise<Admitted> {
  const { authorize, tenantOf, identityOf, allows } = settings
  if (feed.stopping.aborted) throw later()
  // Before anybody is authorised: what is revoked from here on is heard of.
  const since = await withTimeout(feed.stand(), READY_MS, clock, 'The live feed was not ready').catch((cause) => {
    throw later(cause)
  })
  const principal = await authorize(request)
  if (principal === null || principal === undefined || principal === false)
    throw new Refusal(401, 'This feed is not for everybody.')
  const tenant = (await tenantOf?.(principal)) ?? undefined
  if (tenantOf !== undefined && !tenant) throw new Refusal(403, 'This feed is for members of a tenant.')
  return {
    principal,
    tenant,
    identity: await identityOf?.(principal),
    since,
    allows: allows && ((event) => allows(principal, event)),
  }
}

export function later(cause?: unknown): Refusal {
  return new Refusal(503, 'The feed cannot be read now.', { headers: { 'retry-after': '2' }, cause })
}
