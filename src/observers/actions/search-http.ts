/** Calls of a search engine over HTTP: its address, how it knows us, and the failures that all of them share. */
import { reveal } from '../../configuration/index.ts'
import type { ActionContext, SearchProvider } from '../action.ts'
import type { Answer, HttpRequest } from '../network/index.ts'
import { ObserverError, type SentRequest } from '../observer-error.ts'
import { answeredBadly, askHttp, type CallOptions } from './call-http.ts'
import { toReceived } from './record.ts'

export interface SearchHttp {
  readonly origin: string
  /** The answer, if its status is below 300 or expected. Throws `ObserverError` otherwise. */
  ask(call: SearchCall): Promise<Asked>
}

export interface SearchCall {
  readonly method: HttpRequest['method']
  /** Below the address of the provider, encoded: `/products/_doc/42`. */
  readonly path: string
  readonly body?: string
  readonly expected?: readonly number[]
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface Asked extends Answer {
  readonly request: SentRequest
  readonly response: ReturnType<typeof toReceived>
}

/** For one attempt, whatever it takes. */
export const SEARCH_TIMEOUT_MS = 30_000
const KEEP_BYTES = 16_384

export type SearchHttpContext = Pick<ActionContext, 'unguarded' | 'clock'>

export function createSearchHttp(
  { kind, url: secret, apiKey }: SearchProvider,
  { unguarded, clock }: SearchHttpContext,
): SearchHttp {
  const { origin, pathname } = addressOf(secret === undefined ? '' : reveal(secret))
  const base = pathname.replace(/\/+$/, '')
  const what = `The call of the search engine at ${origin}`
  const key = apiKey === undefined ? undefined : reveal(apiKey)
  const authorization = key === undefined ? undefined : authorizationFor(kind, key)
  const headers = [
    'user-agent',
    'aftercommit',
    ...(authorization === undefined ? [] : ['authorization', authorization]),
  ]
  // Of `id:key` and `Basic …` an answer may repeat a half.
  const secrets = key === undefined ? [] : [key, ...key.split(':'), ...authorization!.split(' ').slice(1)]

  return {
    origin,
    async ask({ method, path, body = null, expected = [], timeoutMs, signal }) {
      const list = body === null ? headers : [...headers, 'content-type', 'application/json']
      const sent = { method, url: `${origin}${base}${path.split('?')[0]}`, headers: shown(body !== null) }
      const options: CallOptions = { what, code: 'OB004', timeoutCode: 'OB004', sent, secrets, now: clock.now() }
      const target = { origin, path: base + path }
      const request = { method, target, headers: list, body, timeoutMs, keepBytes: KEEP_BYTES, signal }
      const answer = await askHttp(unguarded, request, options)
      const response = toReceived(answer, secrets)
      if (answer.status < 300 || expected.includes(answer.status)) return { ...answer, request: sent, response }
      throw answeredBadly(answer, response, options)
    },
  }

  function shown(hasBody: boolean): Record<string, string> {
    return {
      'user-agent': 'aftercommit',
      ...(authorization !== undefined && { authorization: '***' }),
      ...(hasBody && { 'content-type': 'application/json' }),
    }
  }
}

/** Elasticsearch shows a key encoded or as `id:key`; OpenSearch knows users with passwords, and tokens. */
function authorizationFor(kind: SearchProvider['kind'], key: string): string {
  const isPair = key.includes(':')
  if (kind === 'elasticsearch') return `ApiKey ${isPair ? Buffer.from(key).toString('base64') : key}`
  return kind === 'opensearch' && isPair ? `Basic ${Buffer.from(key).toString('base64')}` : `Bearer ${key}`
}

function addressOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isUsable = url && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === ''
  if (isUsable) return url
  throw new ObserverError(
    'OB012',
    'url of [providers.search] is not an http or https address without user, password and query. ' +
      'Put what the engine wants to be shown into api_key.',
  )
}

/** A part of a path. Dots alone would be taken for steps by whoever stands between. */
export function segment(text: string): string {
  return /^\.+$/.test(text) ? '%2E'.repeat(text.length) : encodeURIComponent(text)
}
