// An action type with keys of its own: it rings a bell that speaks HTTP.
// #region action
import { defineActionType, GiveUp, RetryAfter } from 'aftercommit'
import { z } from 'zod'

const schema = z.strictObject({
  url: z.string().describe('the address of the bell'),
  text: z.string().min(1).describe('what it says; a template'),
  times: z.int().min(1).max(10).default(1).describe('how often it rings'),
})

export default defineActionType({
  type: 'bell',
  describe: 'Rings a bell that speaks HTTP.',
  schema,
  defaultRetry: 'service',
  prepare({ url, text, times }, { templates, guarded, clock, createMistakes }) {
    // Everything that can be known before there is an event, all of it at once.
    const mistakes = createMistakes()
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) mistakes.add(['url'], 'is not an http or https address.')
    const words = mistakes.at(['text'], () => templates.text(text, 'plain', 'text'))
    mistakes.throwIfAny()

    const { origin, pathname, search } = new URL(url)
    const destination = `bell ${origin}`
    const compose = (scope) => ({ text: words.render(scope), times })
    return {
      destination,
      singleAttempt: false,
      async run({ scope, signal, idempotencyKey }) {
        const began = clock.monotonic()
        const { status } = await guarded.send({
          method: 'POST',
          target: { origin, path: pathname + search },
          headers: ['content-type', 'application/json', 'idempotency-key', idempotencyKey],
          body: JSON.stringify(compose(scope)),
          timeoutMs: 10_000,
          signal,
        })
        if (status === 429) throw new RetryAfter('1m')
        if (status >= 400 && status < 500) throw new GiveUp(`the bell answered with ${status}`)
        if (status >= 300) throw new Error(`the bell answered with ${status}`)
        return { actionType: 'bell', success: true, message: 'rung', durationMs: clock.monotonic() - began }
      },
      preview: ({ scope }) => ({ actionType: 'bell', destination, content: compose(scope) }),
    }
  },
})
// #endregion
