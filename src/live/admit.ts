/** Who may read a feed, asked once per connection, whatever carries it. */
import type { AnyEvent } from '../log/index.ts'
import { type Clock, withTimeout } from '../runtime/index.ts'
import type { Feed, Identity } from './feed.ts'
import { Refusal } from './inbound-problem.ts'

export interface Admitted {
  /** The answer of `authorize`. */
  readonly principal: unknown
  readonly tenant: string | undefined
  readonly identity: Identity | undefined
  /** Revocations above it count, also for what is subscribed to much later. */
  readonly since: bigint
  readonly allows: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined
}

export interface AdmitSettings {
  readonly authorize: (request: Request) => unknown
  readonly tenantOf?:
    | ((principal: unknown) => string | null | undefined | Promise<string | null | undefined>)
    | undefined
  readonly identityOf?: ((principal: unknown) => Identity | Promise<Identity>) | undefined
  readonly allows?: ((principal: unknown, event: AnyEvent) => boolean | Promise<boolean>) | undefined
}

/** A client whose database is away is sent elsewhere rather than kept waiting. */
const READY_MS = 10_000

/** Throws a refusal: 401, 403, or 503 for a client that should come back. */
export async function admit(request: Request, settings: AdmitSettings, feed: Feed, clock: Clock): Promise<Admitted> {
  const { authorize, tenantOf, identityOf, allows } = settings
  if (feed.stopping.aborted) throw tooBusy('This server is stopping.')
  // Before the client is authorised: a revocation from here on ends its feed.
  const since = await withTimeout(feed.stand(), READY_MS, clock, 'The live feed was not ready').catch((cause) => {
    throw tooBusy('The feed cannot be read now.', cause)
  })
  const principal = await authorize(request)
  if (principal === null || principal === undefined || principal === false)
    throw new Refusal(401, 'This feed is not for everybody.')
  const tenant = (await tenantOf?.(principal)) ?? undefined
  if (tenantOf !== undefined && !tenant) throw new Refusal(403, 'This feed is for members of a tenant.')
  const identity = await identityOf?.(principal)
  return { principal, tenant, identity, since, allows: allows && ((event) => allows(principal, event)) }
}

export function tooBusy(detail: string, cause?: unknown): Refusal {
  return new Refusal(503, detail, { headers: { 'retry-after': '2' }, cause })
}
