/**
 * The handler that an SMS API calls when it knows more of a message. Whoever calls must have signed; what is believed
 * becomes an event of the log, once per message and status, however often it is told.
 */
import type { EmitRequest } from '../log/index.ts'
import type { Logger } from '../runtime/index.ts'
import { isMessageId } from './message-id.ts'
import { isSignature, signCallback } from './signature.ts'

export interface StatusCallbackOptions {
  /** The token of the account, which signs. */
  readonly token: string
  /** The address as the API calls it: behind a proxy it is not the one that arrives here. Without a query. */
  readonly url: string
}

export interface StatusCallbackParts {
  readonly append: (event: EmitRequest) => Promise<unknown>
  readonly logger: Logger
}

export type FetchHandler = (request: Request) => Promise<Response>

const MOST_BYTES = 65_536

export function createStatusCallback(
  { token, url }: StatusCallbackOptions,
  { append, logger }: StatusCallbackParts,
): FetchHandler {
  return async (request) => {
    if (request.method !== 'POST') return answer(405, 'Only POST is answered here.')
    const body = await readText(request)
    if (body === undefined) return answer(413, 'This is longer than any status.')
    const parameters = new URLSearchParams(body)
    const query = new URL(request.url).search
    const expected = signCallback(token, url + query, parameters)
    const given = request.headers.get('x-twilio-signature') ?? ''
    if (!isSignature(given, expected)) return answer(403, 'The signature is missing or wrong.')
    const event = toEvent(parameters, new URLSearchParams(query))
    if (event === undefined) return answer(204)
    try {
      await append(event)
    } catch (error) {
      logger.error(
        { err: error, event_type: event.type },
        'the status of an SMS was not kept; it is told again, or lost',
      )
      return answer(503, 'It was not kept. Tell it again.')
    }
    return answer(204)
  }
}

/** Undefined for steps on the way, and for what is no status of a message. */
function toEvent(parameters: URLSearchParams, query: URLSearchParams): EmitRequest | undefined {
  const sid = parameters.get('MessageSid') ?? ''
  const status = parameters.get('MessageStatus') ?? ''
  const type = TYPES.get(status)
  if (type === undefined || !isMessageId(sid)) return undefined
  const code = parameters.get('ErrorCode')
  // The action put it into the address, and the signature covers the address.
  const causationId = query.get('aftercommit_event')
  return {
    type,
    id: `sms:${sid}:${status}`,
    aggregate: { type: 'sms', id: sid },
    payload: {
      sid,
      status,
      to: maskNumber(parameters.get('To') ?? ''),
      error_code: code !== null && /^\d{1,6}$/.test(code) ? Number(code) : null,
      event_id: causationId,
    },
    ...(causationId !== null && causationId !== '' && { metadata: { causationId } }),
  }
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['delivered', 'sms.delivered'],
  ['undelivered', 'sms.failed'],
  ['failed', 'sms.failed'],
  ['canceled', 'sms.failed'],
])

/** Enough to recognise a number that one knows. */
function maskNumber(number: string): string {
  return `***${number.replace(/\D/g, '').slice(-3)}`
}

async function readText(request: Request): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function answer(status: number, text?: string): Response {
  return new Response(text ?? null, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } })
}
