/** One message to one browser, by its push service. Encrypted and signed by web-push, called by our own guarded HTTP. */

import { reveal } from '../../configuration/index.ts'
import type { Recipient } from '../../push/index.ts'
import type { ActionContext, PushProvider } from '../action.ts'
import { CallFailed, judgeUrl, parseRetryAfter, RefusedAddress, toTarget } from '../network/index.ts'
import type { Received, SentRequest } from '../observer-error.ts'
import { isTransientStatus } from './call-http.ts'
import { secretsOfHeaders, secretsOfUrl, toReceived } from './record.ts'

export interface PushMessage {
  /** Also its topic: what waits at the service under it is replaced, not repeated. */
  readonly id: string
  readonly payload: string
  readonly ttlSeconds: number
  readonly urgency: 'very-low' | 'low' | 'normal' | 'high'
}

export type PushOutcome =
  | { readonly kind: 'sent' | 'gone' | 'aborted' }
  | { readonly kind: 'refused'; readonly said: string; readonly status?: number | undefined; readonly detail: Detail }
  | {
      readonly kind: 'later'
      readonly said: string
      readonly status?: number | undefined
      readonly retryAfterMs?: number | undefined
      readonly detail: Detail
    }

type Detail = { readonly request?: SentRequest; readonly response?: Received }

export interface PushService {
  /** Never throws. */
  post(recipient: Recipient, message: PushMessage, signal: AbortSignal): Promise<PushOutcome>
}

const TIMEOUT_MS = 30_000

export function createPushService(provider: PushProvider, context: ActionContext): PushService {
  const { guarded, network, clock } = context
  const vapidDetails = {
    subject: reveal(provider.subject),
    publicKey: reveal(provider.publicKey),
    privateKey: reveal(provider.privateKey),
  }

  async function send({ endpoint, p256dh, auth }: Recipient, message: PushMessage, signal: AbortSignal) {
    const refusal = judgeUrl(endpoint, network)
    if (refusal !== undefined) return refused(`its address is refused, because ${refusal}`)
    const url = new URL(endpoint)
    const { default: webPush } = await import('web-push')
    const { headers, body } = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, message.payload, {
      ...{ vapidDetails, TTL: message.ttlSeconds, urgency: message.urgency, topic: message.id },
      contentEncoding: 'aes128gcm',
    })
    const list = toList(headers)
    const sent: SentRequest = { method: 'POST', url: `${url.origin}/***`, headers: {} }
    const request = { method: 'POST', target: toTarget(url), headers: list, body } as const
    const answer = await guarded.send({ ...request, timeoutMs: TIMEOUT_MS, signal })
    const { status } = answer
    if (status < 300) return { kind: 'sent' } as const
    if (status === 404 || status === 410) return { kind: 'gone' } as const
    const known = [endpoint, p256dh, auth, vapidDetails.privateKey, ...url.pathname.split('/')]
    const secrets = [...known, ...secretsOfUrl(url), ...secretsOfHeaders(list)]
    const detail = { request: sent, response: toReceived(answer, secrets) }
    const said = `${url.origin} answered with ${status}`
    if (!isTransientStatus(status)) return refused(said, status, detail)
    return {
      kind: 'later',
      said,
      status,
      detail,
      retryAfterMs: parseRetryAfter(answer.retryAfter, clock.now()),
    } as const
  }

  return {
    async post(recipient, message, signal) {
      try {
        signal.throwIfAborted()
        return await send(recipient, message, signal)
      } catch (error) {
        if (signal.aborted) return { kind: 'aborted' }
        return toOutcome(error, new URL(recipient.endpoint).origin)
      }
    },
  }
}

function refused(said: string, status?: number, detail: Detail = {}): PushOutcome {
  return { kind: 'refused', said, status, detail }
}

/** Text of web-push may quote keys, so it is not told. */
function toOutcome(error: unknown, origin: string): PushOutcome {
  if (error instanceof RefusedAddress) return refused(`${origin} is refused, because ${error.message}`)
  if (error instanceof CallFailed)
    return { kind: 'later', said: `${origin} did not answer (${error.code})`, detail: {} }
  return refused(`a message to ${origin} could not be encrypted or signed`)
}

/** What HTTP sets itself is left out. */
function toList(headers: Record<string, unknown>): string[] {
  return Object.entries(headers)
    .filter(([name]) => name.toLowerCase() !== 'content-length')
    .flatMap(([name, value]) => [name.toLowerCase(), String(value)])
}
