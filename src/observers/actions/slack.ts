/** `type = "slack"`: a message through the incoming webhook of `[providers.slack]`. */
import { z } from 'zod'
import type { Scope } from '../../conditions/index.ts'
import { reveal } from '../../configuration/index.ts'
import { stringifyJson } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import type { ActionContext, ActionType, PreparedAction } from '../action.ts'
import { toTarget } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { callHttp } from './call-http.ts'
import { createMistakes } from './mistakes.ts'
import { secretsOfUrl } from './record.ts'
import { rendering } from './rendering.ts'
import { templateText } from './schema-parts.ts'
import { compileBlocks, escapeSlack } from './slack-blocks.ts'

const schema = z.strictObject({
  channel: templateText.optional().describe('only where the incoming webhook may choose its channel'),
  message: templateText.optional().describe('mrkdwn; beside `blocks` it is the text of the notification'),
  blocks: z.array(z.record(z.string(), z.unknown())).min(1).max(50).optional().describe('Block Kit'),
})

type SlackConfig = z.infer<typeof schema>

export const slack: ActionType<SlackConfig> = { type: 'slack', schema, defaultRetry: 'service', prepare }

const TIMEOUT_MS = 30_000

function prepare(config: SlackConfig, context: ActionContext): PreparedAction {
  const { templates, unguarded, clock, providers } = context
  const mistakes = createMistakes()
  const url = mistakes.at([], () => providerUrl(providers.slack && reveal(providers.slack.webhookUrl)))
  const { channel, message, blocks } = config
  const compiled = {
    channel:
      channel === undefined ? undefined : mistakes.at(['channel'], () => templates.text(channel, 'plain', 'channel')),
    message:
      message === undefined ? undefined : mistakes.at(['message'], () => templates.text(message, 'slack', 'message')),
    blocks: blocks === undefined ? undefined : mistakes.at(['blocks'], () => compileBlocks(blocks, templates)),
  }
  mistakes.throwIfAny()

  const destination = `slack ${url.origin}`
  const what = `The Slack message to ${url.origin}`
  const headers = { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'aftercommit' }
  const list = Object.entries(headers).flat()
  const target = toTarget(url)
  // The path of an incoming webhook is its secret.
  const sent = { method: 'POST', url: `${url.origin}/***`, headers }
  const secrets = [
    url.href,
    url.pathname,
    ...url.pathname.split('/').filter((part) => part.length >= 8),
    ...secretsOfUrl(url),
  ]

  function compose(event: AnyEvent, scope: Scope): Record<string, unknown> {
    return rendering(what, () => ({
      ...(compiled.channel && { channel: compiled.channel.render(scope) }),
      text: compiled.message?.render(scope) ?? defaultText(event),
      ...(compiled.blocks && { blocks: compiled.blocks.render(scope) }),
    }))
  }

  return {
    destination,
    singleAttempt: false,
    async run({ event, scope, signal }) {
      const began = clock.monotonic()
      const body = rendering(what, () => stringifyJson(compose(event, scope), { name: 'message' }))
      const response = await callHttp(
        unguarded,
        { method: 'POST', target, headers: list, body, timeoutMs: TIMEOUT_MS, signal },
        { what, code: 'OB008', timeoutCode: 'OB008', sent, secrets, now: clock.now() },
      )
      const durationMs = clock.monotonic() - began
      return { actionType: 'slack', success: true, message: 'message sent', durationMs, request: sent, response }
    },
    preview: ({ event, scope }) => ({ actionType: 'slack', destination, content: compose(event, scope) }),
  }
}

function defaultText({ type, id, aggregateType, aggregateId }: AnyEvent): string {
  const about = aggregateType === null ? 'event' : aggregateType
  const which = (aggregateId ?? id).replaceAll('`', "'")
  return `*${escapeSlack(type)}* - ${escapeSlack(about)} \`${escapeSlack(which)}\``
}

function providerUrl(text: string | undefined): URL {
  if (text === undefined) {
    throw new ObserverError(
      'OB012',
      'Slack is not configured, so a slack action cannot be used. Add [providers.slack] with webhook_url.',
    )
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new ObserverError(
      'OB012',
      'webhook_url of [providers.slack] is not an http or https address. Copy the one that Slack shows for the webhook.',
    )
  }
  return url
}
