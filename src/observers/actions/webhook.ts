/** `type = "webhook"`: calls an address over HTTP, signed when there is a secret. */
import { z } from 'zod'
import { reveal } from '../../configuration/index.ts'
import { type Attributes, toMs } from '../../runtime/index.ts'
import { signWebhook, toSigningKey } from '../../webhook-signature.ts'
import type { ActionContext, ActionRequest, ActionType, PreparedAction } from '../action.ts'
import { callHttp } from './call-http.ts'
import { createMistakes } from './mistakes.ts'
import { hide, isMaskedInPreview, maskHeaders, secretsOfHeaders } from './record.ts'
import { rendering } from './rendering.ts'
import { durationText, secretText, templateText } from './schema-parts.ts'
import { prepareAddress } from './webhook-address.ts'
import { prepareBody, prepareHeaders, renderHeaders } from './webhook-content.ts'

const schema = z.strictObject({
  url: templateText.describe('where to; the path and the query may hold templates'),
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).default('POST'),
  headers: z
    .record(z.string(), secretText)
    .default({})
    .describe('values may be templates, or references to the environment'),
  body: z.unknown().optional().describe('a tree of JSON with templates; the event as CloudEvents JSON by default'),
  timeout: durationText.default('30s').describe('for one attempt, from connecting to the last byte'),
  retry: z.boolean().default(true).describe('false: a single attempt'),
  secret: z
    .union([secretText, z.array(secretText).min(1).max(5)])
    .optional()
    .describe('signs by Standard Webhooks; several while one replaces another'),
})

type WebhookConfig = z.infer<typeof schema>

export const webhook: ActionType<WebhookConfig> = { type: 'webhook', schema, defaultRetry: 'service', prepare }

function prepare(config: WebhookConfig, context: ActionContext): PreparedAction {
  const { method } = config
  const { templates, network, guarded, clock, source, tracing: telemetry } = context
  const mistakes = createMistakes()
  const secrets = config.secret === undefined ? [] : [config.secret].flat().map(reveal)
  const keys = mistakes.at(['secret'], () => secrets.map(toSigningKey))
  const address = mistakes.at(['url'], () => prepareAddress(config.url, templates, network))
  const headers = prepareHeaders(config.headers, templates, mistakes)
  const contentType = headers.fixed['content-type']
  const body = prepareBody({ method, body: config.body, contentType, templates, source }, mistakes)
  mistakes.throwIfAny()

  const given = new Set(Object.keys(config.headers).map((name) => name.toLowerCase()))
  const tracing = !given.has('traceparent')
  const timeoutMs = toMs(config.timeout, 'timeout')
  const destination = `webhook ${address.origin}`
  const what = `The webhook to ${address.origin}`
  const fixed = {
    ...(given.has('user-agent') ? {} : { 'user-agent': 'aftercommit' }),
    ...(given.has('content-type') || body.contentType === null ? {} : { 'content-type': body.contentType }),
    ...headers.fixed,
  }
  const fixedList = Object.entries(fixed).flat()
  const masked = maskHeaders({ ...fixed, ...Object.fromEntries(headers.rendered.map(([name]) => [name, ''])) })
  const kept = [...secrets, ...secretsOfHeaders(Object.entries(headers.fixed).flat())]

  function compose({ event, scope }: Pick<ActionRequest, 'event' | 'scope'>) {
    return rendering(what, () => {
      const list = fixedList.slice()
      const { traceparent } = event.metadata
      if (tracing && traceparent !== null && TRACEPARENT.test(traceparent)) list.push('traceparent', traceparent)
      const fixedEnd = list.length
      renderHeaders(what, headers, scope, list)
      return { place: address.at(scope), list, rendered: list.slice(fixedEnd), body: body.render(event, scope) }
    })
  }

  return {
    destination,
    singleAttempt: !config.retry,
    ready: () => guarded.open(),
    async run(request) {
      const began = clock.monotonic()
      const now = clock.now()
      const { place, list, rendered, body: text } = compose(request)
      addIdentity(list, `msg_${request.idempotencyKey}`, now, text ?? '')
      const sent = { method, url: place.masked, headers: masked }
      const hidden = [...kept, ...secretsOfHeaders(rendered), ...place.secrets]
      const options = { what, code: 'OB006', timeoutCode: 'OB005', sent, secrets: hidden, now } as const
      const call = () => {
        const headers = tracing ? withTrace(list, telemetry?.currentTraceparent()) : list
        return callHttp(
          guarded,
          { method, target: place, headers, body: text, timeoutMs, signal: request.abort ?? request.signal },
          options,
        )
      }
      const response = await (telemetry === undefined
        ? call()
        : telemetry.span(`${method} ${address.origin}`, spanAttributes(method, place.masked), [], call))
      const durationMs = clock.monotonic() - began
      const message = `HTTP ${response.status}`
      return { actionType: 'webhook', success: true, message, durationMs, request: sent, response }
    },
    preview(request) {
      const { place, list, body: text } = compose(request)
      const shown: Record<string, string> = {}
      for (let at = 0; at < list.length; at += 2) {
        const [name = '', value = ''] = list.slice(at, at + 2)
        shown[name] = isMaskedInPreview(name, headers.secretNames.has(name)) ? '***' : value
      }
      const url = hide(place.origin + place.path, address.secrets)
      const content = { method, url, headers: shown, body: text, signed: keys.length > 0 }
      return { actionType: 'webhook', destination, content }
    },
  }

  /** The id is sent unsigned too: a receiver knows a repetition by it. */
  function addIdentity(list: string[], id: string, now: Date, text: string): void {
    const seconds = Math.floor(now.getTime() / 1_000)
    list.push('webhook-id', id, 'webhook-timestamp', String(seconds))
    if (keys.length > 0) list.push('webhook-signature', signWebhook(keys, id, seconds, text))
  }
}

/** The receiver continues the trace of this call, where there is one, and not that of the emitter. */
function withTrace(list: readonly string[], traceparent: string | undefined): readonly string[] {
  if (traceparent === undefined) return list
  const at = list.indexOf('traceparent')
  return at < 0 ? [...list, 'traceparent', traceparent] : list.with(at + 1, traceparent)
}

/** Names of OpenTelemetry's conventions for HTTP clients; the address as run records have it, without secrets. */
function spanAttributes(method: string, url: string): Attributes {
  return { 'http.request.method': method, 'url.full': url }
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
