/** `type = "log"`: a line in the log of the process. */
import { z } from 'zod'
import { printable } from '../../printable.ts'
import type { ActionContext, ActionRequest, ActionType, PreparedAction } from '../action.ts'
import { createMistakes } from './mistakes.ts'
import { rendering } from './rendering.ts'
import { templateText } from './schema-parts.ts'

const schema = z.strictObject({
  level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  message: templateText
    .default('{{ event.type }} {{ event.id }}')
    .describe('what it shows of the payload is up to you'),
})

type LogConfig = z.infer<typeof schema>

export const log: ActionType<LogConfig> = { type: 'log', schema, defaultRetry: 'local', prepare }

function prepare({ level, message }: LogConfig, { templates, logger, clock }: ActionContext): PreparedAction {
  const mistakes = createMistakes()
  const template = mistakes.at(['message'], () => templates.text(message, 'plain', 'message'))
  mistakes.throwIfAny()

  // Escaped, so that no event can write a second line and pass it off as somebody else's.
  const lineOf = ({ scope }: Pick<ActionRequest, 'scope'>) =>
    rendering('The log line', () => printable(template.render(scope)))

  return {
    destination: null,
    singleAttempt: false,
    async run(request) {
      const began = clock.monotonic()
      const { event, observer, action } = request
      logger[level]({ event_id: event.id, event_type: event.type, observer, action }, lineOf(request))
      return { actionType: 'log', success: true, message: 'logged', durationMs: clock.monotonic() - began }
    },
    preview: (request) => ({ actionType: 'log', destination: null, content: { level, message: lineOf(request) } }),
  }
}
