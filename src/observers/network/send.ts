/**
 * One HTTP request under limits, however the other side behaves. The ends of a request, failures first:
 *
 * - refused: the address may not be called (`RefusedAddress`); nothing was sent
 * - no connection, reset, TLS that cannot be trusted, an answer that is not HTTP, too many headers: `CallFailed`
 * - the deadline passes before there is a status: `CallFailed` with `timedOut`
 * - the caller's signal aborts: its reason
 * - a status arrives: that is the answer. The first bytes of the body are kept for the record; one that does not end, or
 *   is longer than 64 kB, is cut off together with its connection and changes nothing: what the receiver had to say is
 *   in the status, and calling a 200 a failure would only send the same thing twice.
 *
 * Redirects are answers like any other. Proxies of the environment are not used: they would resolve names again.
 */
import type { Agent, Dispatcher } from 'undici'
import type { Clock } from '../../runtime/index.ts'
import { createDialer, type Dialer } from './dial.ts'
import { type Answer, Exchange } from './exchange.ts'
import { createGate } from './gate.ts'
import type { NetworkRules } from './guard.ts'
import type { Abort } from './on-abort.ts'
import { createResolver, type ResolverOptions } from './resolve.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Judged already: see `judgeUrl`. */
  readonly target: Target
  /** Name, value, name, value … */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | null
  /** For everything, from the first packet to the last. */
  readonly timeoutMs: number
  /** How much of the answer is wanted: 1,024 bytes unless told. */
  readonly keepBytes?: number
  readonly signal: Abort
}

/** Where a request goes: the parts of a URL that travel. */
export interface Target {
  readonly origin: string
  /** With the query. */
  readonly path: string
}

export function toTarget({ origin, pathname, search }: URL): Target {
  return { origin, path: pathname + search }
}

export interface Http {
  /** Loads the client, so that the first request does not wait for it. */
  open(): Promise<void>
  send(request: HttpRequest): Promise<Answer>
  /** Ends what is under way. May be called twice. */
  close(): Promise<void>
}

export interface HttpOptions {
  /** Null where anything may be called. */
  readonly rules: NetworkRules | null
  readonly clock: Clock
  readonly dns?: ResolverOptions
  /** The certificate authority to trust, in place of the usual ones. */
  readonly ca?: string
  readonly limits?: Partial<HttpLimits>
}

export interface HttpLimits {
  /** Connections to one origin. */
  readonly perOrigin: number
  /** Requests under way. */
  readonly total: number
  /** Above this many open connections none is kept for later, so ten thousand hosts do not use up the descriptors. */
  readonly keptOpen: number
  readonly connectTimeoutMs: number
}

const LIMITS: HttpLimits = { perOrigin: 64, total: 256, keptOpen: 256, connectTimeoutMs: 10_000 }

export function createHttp({ rules, clock, dns = {}, ca, limits = {} }: HttpOptions): Http {
  const { perOrigin, total, keptOpen, connectTimeoutMs } = { ...LIMITS, ...limits }
  const resolver = createResolver(dns)
  const gate = createGate(total)
  let client: { readonly agent: Agent; readonly dialer: Dialer } | undefined
  let isClosed = false

  /** To check a file of rules nothing is sent, so undici is not loaded for it. */
  async function openClient(): Promise<NonNullable<typeof client>> {
    const { Agent, buildConnector } = await import('undici')
    if (client) return client
    const timeoutMs = connectTimeoutMs
    const dialer = createDialer({ buildConnector, resolver, rules, timeoutMs, ...(ca === undefined ? {} : { ca }) })
    const agent = new Agent({
      connect: dialer.connect,
      connections: perOrigin,
      pipelining: 1,
      maxHeaderSize: 16_384,
      // One deadline for the whole request takes the place of undici's own, which start anew with every byte.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    client = { agent, dialer }
    if (isClosed) await agent.destroy()
    return client
  }

  return {
    async open() {
      if (!client) await openClient()
    },
    async send(request) {
      const leave = await gate.enter(request.signal)
      try {
        const { agent, dialer } = client ?? (await openClient())
        return await new Promise<Answer>((resolve, reject) => {
          const exchange = new Exchange(request, clock, resolve, reject)
          agent.dispatch(toDispatch(request, dialer.open >= keptOpen), exchange)
        })
      } finally {
        leave()
      }
    },
    async close() {
      isClosed = true
      resolver.close()
      await client?.agent.destroy()
    },
  }
}

function toDispatch({ method, target, headers, body }: HttpRequest, reset: boolean): Dispatcher.DispatchOptions {
  return { origin: target.origin, path: target.path, method, headers: headers as string[], body, reset }
}
