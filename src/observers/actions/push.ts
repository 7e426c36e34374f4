/** `type = "push"`: a message to every browser that a user has registered, by Web Push with VAPID. */
import { createRequire } from 'node:module'
import { z } from 'zod'
import type { Scope } from '../../conditions/index.ts'
import { stringifyJson } from '../../events/index.ts'
import { toMs } from '../../runtime/index.ts'
import type { ActionContext, ActionType, PreparedAction, TemplateCompiler } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { createMistakes, type Mistakes } from './mistakes.ts'
import { createPushSending } from './push-sending.ts'
import { rendering, unusable } from './rendering.ts'
import { durationText, templateText } from './schema-parts.ts'

const schema = z.strictObject({
  user: templateText.describe('whose browsers: what was given to ac.push.register()'),
  title: templateText,
  body: templateText.optional(),
  data: z.record(z.string(), z.unknown()).optional().describe('handed to the service worker, its templates rendered'),
  url: z
    .string()
    .regex(/^(https?:\/\/[^\s{]+|\/(?!\/))/, {
      message: 'must begin with https://, http:// or /, and its host must not be a template',
    })
    .optional()
    .describe('what a click opens; the path and the query may hold templates'),
  ttl: durationText.default('28d').describe('how long the push service keeps it for a browser that is away'),
  urgency: z.enum(['very-low', 'low', 'normal', 'high']).default('normal').describe('what it may cost the battery'),
})

type PushConfig = z.infer<typeof schema>

export const push: ActionType<PushConfig> = { type: 'push', schema, defaultRetry: 'service', prepare }

const WHAT = 'The push message'
const DESTINATION = 'push web'
/** What every push service takes, less what the encryption adds: RFC 8030, 7.2, and RFC 8188. */
const MOST_BYTES = 4_096 - 103

function prepare(config: PushConfig, context: ActionContext): PreparedAction {
  const { templates, clock, providers } = context
  const mistakes = createMistakes()
  if (providers.push === undefined) mistakes.add([], NO_PROVIDER)
  if (!isInstalled('web-push')) mistakes.add([], NOT_INSTALLED)
  const content = compileContent(config, templates, mistakes)
  mistakes.throwIfAny()

  const sending = createPushSending(providers.push!, context)
  const how = { ttlSeconds: Math.floor(toMs(config.ttl, 'ttl') / 1_000), urgency: config.urgency }

  /** `id` is the same for every attempt: a service worker that uses it as a tag shows the message once. */
  function compose(idempotencyKey: string, scope: Scope) {
    return rendering(WHAT, () => {
      const { user, ...shown } = content(scope)
      if (user === '' || user.length > 255) throw unusable(WHAT, 'what `user` became is empty or too long')
      const payload = stringifyJson({ id: idempotencyKey, ...shown }, { name: 'message' })
      const bytes = Buffer.byteLength(payload)
      if (bytes > MOST_BYTES) throw tooLong(bytes)
      return { user, shown, payload, bytes }
    })
  }

  return {
    destination: DESTINATION,
    singleAttempt: false,
    async run({ idempotencyKey, scope, signal }) {
      const began = clock.monotonic()
      const { user, payload } = compose(idempotencyKey, scope)
      const message = await sending.send({ user, payload, id: idempotencyKey, ...how }, signal)
      return { actionType: 'push', success: true, message, durationMs: clock.monotonic() - began }
    },
    preview({ idempotencyKey, scope }) {
      const { user, shown, bytes } = compose(idempotencyKey, scope)
      const { ttl, urgency } = config
      return { actionType: 'push', destination: DESTINATION, content: { user, ...shown, ttl, urgency, bytes } }
    },
  }
}

const NO_PROVIDER =
  'Web push is not configured, so a push action cannot be used. Add [providers.push] with subject, public_key and ' +
  'private_key.'
const NOT_INSTALLED =
  'The package "web-push" is not installed, so a push action cannot be used. Install it: npm install web-push@3'

function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name)
    return true
  } catch {
    return false
  }
}

function compileContent(
  { user, title, body, data, url }: PushConfig,
  templates: TemplateCompiler,
  mistakes: Mistakes,
): (scope: Scope) => { user: string; title: string; body?: string; data?: unknown; url?: string } {
  const compile = (key: string, source: string, target: 'plain' | 'url' = 'plain') =>
    mistakes.at([key], () => templates.text(source, target, key))
  const compiled = {
    user: compile('user', user),
    title: compile('title', title),
    body: body === undefined ? undefined : compile('body', body),
    url: url === undefined ? undefined : compile('url', url, 'url'),
    data: data && mistakes.at(['data'], () => templates.tree(data, 'data')),
  }
  return (scope) => ({
    user: compiled.user.render(scope),
    title: compiled.title.render(scope),
    ...(compiled.body && { body: compiled.body.render(scope) }),
    ...(compiled.url && { url: compiled.url.render(scope) }),
    ...(compiled.data && { data: compiled.data.render(scope) }),
  })
}

function tooLong(bytes: number): ObserverError {
  return new ObserverError(
    'OB010',
    `${WHAT} was not sent: it has ${bytes} bytes, and push services take ${MOST_BYTES}. Shorten body or data; what a ` +
      'click needs can be fetched then.',
  )
}
