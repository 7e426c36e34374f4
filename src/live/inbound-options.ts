/** What users give to `ac.live.inbound`, and the same checked, with every default filled in. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { AftercommitError } from '../errors.ts'
import { compilePatterns } from '../events/index.ts'
import { toBytes } from '../options.ts'
import { type Duration, toMs } from '../runtime/index.ts'
import { toSigningKey } from '../webhook-signature.ts'

export interface InboundOptions<Principal = string | null> {
  /** Patterns of the types that may be published here. Never `auth.*` or `aftercommit.*`, whatever they say. */
  readonly allow: readonly string[]
  /**
   * Who may publish: the bearer tokens themselves, or a function that gives the principal behind one and null for a
   * token that is not good. What the function throws is answered with 503. With `secret` as well, both must be right.
   */
  readonly token?: string | readonly string[] | TokenCheck<Principal> | undefined
  /**
   * Senders sign the body as Standard Webhooks does; several secrets while one is being replaced. Events in `ce-` headers
   * are then refused, because the signature does not cover headers.
   */
  readonly secret?: string | readonly string[] | undefined
  /**
   * Whose events these are. `principal` is what `token` gave, the token itself when it is a text, and null when only a
   * signature was asked for. Null refuses.
   */
  readonly identity?: ((principal: Principal) => InboundIdentity | null | Promise<InboundIdentity | null>) | undefined
  /** The whole body; `"1MB"` unless told. */
  readonly maxBytes?: string | number | undefined
  /** In one batch; 1000 unless told. */
  readonly maxEvents?: number | undefined
  /** For the body to arrive; `"10s"` unless told. */
  readonly timeout?: Duration | undefined
  /** The oldest signature to accept, and the furthest one may lie ahead of this clock. Default: "5m". */
  readonly tolerance?: Duration | undefined
}

export type TokenCheck<Principal> = (
  token: string,
  request: Request,
) => Principal | null | undefined | Promise<Principal | null | undefined>

export interface InboundIdentity {
  readonly user?: string | null | undefined
  readonly tenant?: string | null | undefined
}

export interface InboundSettings {
  readonly isAllowed: (type: string) => boolean
  /** Undefined: no token is asked for. */
  readonly checkToken: TokenCheck<unknown> | undefined
  readonly secrets: readonly string[]
  readonly identity: (principal: unknown) => InboundIdentity | null | Promise<InboundIdentity | null>
  readonly maxBytes: number
  readonly maxEvents: number
  readonly timeoutMs: number
  readonly tolerance: Duration
}

export function toInboundSettings<Principal>(options: InboundOptions<Principal>): InboundSettings {
  const {
    allow,
    token,
    secret,
    identity,
    maxBytes = '1MB',
    maxEvents = 1000,
    timeout = '10s',
    tolerance = '5m',
  } = options
  if (!Array.isArray(allow) || allow.length === 0) refuse('needs `allow`, the patterns of the types it takes')
  if (token === undefined && secret === undefined) {
    refuse('has neither `token` nor `secret`, so anybody could publish through it')
  }
  const secrets = secret === undefined ? [] : typeof secret === 'string' ? [secret] : [...secret]
  if (secret !== undefined && secrets.length === 0) refuse('has an empty list as `secret`')
  for (const one of secrets) toSigningKey(one)
  toMs(tolerance, 'tolerance')
  if (!Number.isSafeInteger(maxEvents) || maxEvents < 1) refuse('needs a whole `maxEvents` from 1 up')
  return {
    isAllowed: toIsAllowed(allow),
    checkToken: token === undefined ? undefined : toTokenCheck(token),
    secrets,
    // Only ever given what `checkToken` gave.
    identity: (identity as InboundSettings['identity'] | undefined) ?? (() => ({})),
    maxBytes: toBytes(maxBytes, 'maxBytes'),
    maxEvents,
    timeoutMs: toMs(timeout, 'timeout'),
    tolerance,
  }
}

/** Events that this library gives a meaning of its own: a stranger who could publish them could revoke a token. */
function isReserved(type: string): boolean {
  const first = type.split('.', 1)[0]
  return first === 'auth' || first === 'aftercommit'
}

function toIsAllowed(allow: readonly string[]): (type: string) => boolean {
  const matches = compilePatterns(allow)
  const reserved = allow.find(isReserved)
  if (reserved !== undefined) refuse(`allows "${reserved}", which nobody may publish from outside; take it out`)
  return (type) => !isReserved(type) && matches(type)
}

function toTokenCheck(token: string | readonly string[] | TokenCheck<unknown>): TokenCheck<unknown> {
  if (typeof token === 'function') return token
  const tokens = typeof token === 'string' ? [token] : [...token]
  if (tokens.length === 0) refuse('has an empty list as `token`')
  if (tokens.some((one) => typeof one !== 'string' || one.length < SHORTEST_TOKEN)) {
    refuse(`has a token of fewer than ${SHORTEST_TOKEN} characters, which can be guessed`)
  }
  const known = tokens.map((one) => ({ token: one, digest: digestOf(one) }))
  // Every token is compared, as digests of one length, so that the time taken tells nothing.
  return (given) => {
    const digest = digestOf(given)
    const fitting = known.filter((one) => timingSafeEqual(one.digest, digest))
    return fitting[0]?.token ?? null
  }
}

const SHORTEST_TOKEN = 16

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function refuse(fault: string): never {
  throw new AftercommitError('BAD_OPTION', `An inbound endpoint ${fault}. It was not created.`)
}
