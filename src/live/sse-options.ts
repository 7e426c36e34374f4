/** What `ac.live.sse` takes, and what is made of it. */
import { AftercommitError } from '../errors.ts'
import { compilePatterns } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Duration, toMs } from '../runtime/index.ts'
import type { BufferLimits, Identity } from './feed.ts'

export interface SseOptions<Principal = unknown, Event = AnyEvent, Patterns = readonly string[]> {
  /**
   * Patterns of events that may be sent; all but `auth.*` and `aftercommit.*` unless told. A client may ask for less.
   */
  readonly on?: Patterns | undefined
  /**
   * Who asks? Null, undefined and false refuse with 401. There is no feed without it: `() => 'anybody'` makes one public
   * on purpose.
   */
  readonly authorize: (request: Request) => Principal | null | undefined | Promise<Principal | null | undefined>
  /** Whether this client may see this event; asked for each, in order. The event is shared and frozen. */
  readonly allows?: ((principal: Principal, event: Event) => boolean | Promise<boolean>) | undefined
  /**
   * What is sent in place of CloudEvents JSON; undefined sends nothing. A function of one parameter is called once per
   * event, and what it gives is sent to all clients; one that takes the principal is called for each of them.
   */
  readonly project?: ((event: Event, principal: Principal) => unknown) | undefined
  /** Clients see events of this tenant only; one that has none is refused with 403. */
  readonly tenantOf?: ((principal: Principal) => Awaitable<string | null | undefined>) | undefined
  /** Whom the connection belongs to: when one of them is revoked, it is closed on every instance. */
  readonly identityOf?: ((principal: Principal) => Awaitable<Identity>) | undefined
  /** How often a quiet connection shows that it is alive; `"15s"` unless told. */
  readonly heartbeat?: Duration | undefined
  /** More are refused with 503; 10,000 unless told. */
  readonly maxClients?: number | undefined
  /** What may wait for a slow client before it is cut off and told where to resume; 2,000 events, 4 MB unless told. */
  readonly maxBuffered?: Partial<BufferLimits> | undefined
  /** Which other origins may read the feed from a browser; none unless told. */
  readonly cors?: CorsOptions | undefined
  /** The `source` of the CloudEvents; `urn:aftercommit:<schema>` unless told. */
  readonly source?: string | undefined
}

export type Awaitable<T> = T | Promise<T>

export interface CorsOptions {
  /** Such as `https://shop.example`, or `*`. */
  readonly origins: readonly string[]
  /** Whether browsers send cookies along; not together with `*`. */
  readonly credentials?: boolean | undefined
}

export interface SseSettings extends Omit<SseOptions, 'heartbeat' | 'source'> {
  readonly maxClients: number
  readonly heartbeatMs: number
  readonly source: string
}

export function toSseSettings(options: SseOptions, source: string): SseSettings {
  const { authorize, on, maxBuffered, maxClients = 10_000, heartbeat = '15s', cors } = options
  if (typeof authorize !== 'function') {
    refuse(
      'A live feed needs `authorize`, which says who asks; without it anybody could read the log. Give a function.',
    )
  }
  for (const name of ['allows', 'project', 'tenantOf', 'identityOf'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') refuse(`\`${name}\` must be a function.`)
  }
  if (on !== undefined) compilePatterns(on)
  checkCount('maxClients', maxClients)
  if (maxBuffered?.events !== undefined) checkCount('maxBuffered.events', maxBuffered.events)
  if (maxBuffered?.bytes !== undefined) checkCount('maxBuffered.bytes', maxBuffered.bytes)
  if (cors !== undefined) checkCors(cors)
  const heartbeatMs = toMs(heartbeat, 'heartbeat')
  if (heartbeatMs < 100) refuse('`heartbeat` must be at least "100ms".')
  return { ...options, maxClients, heartbeatMs, source: options.source ?? source }
}

function checkCors({ origins, credentials = false }: CorsOptions): void {
  const isOrigin = (origin: string) => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)
  const bad = origins.find((origin) => !isOrigin(origin))
  if (bad !== undefined) refuse(`"${bad}" of \`cors.origins\` is no origin such as "https://shop.example".`)
  if (credentials && origins.includes('*')) refuse('`cors.credentials` needs origins that are named, not "*".')
}

function checkCount(option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) refuse(`\`${option}\` must be a whole number from 1 up.`)
}

function refuse(fault: string): never {
  throw new AftercommitError('BAD_OPTION', `${fault} The feed was not created.`)
}
