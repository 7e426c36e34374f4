/** `type = "email"`: a mail through `[providers.smtp]`. */
import { z } from 'zod'
import type { Scope } from '../../conditions/index.ts'
import { closest } from '../../events/index.ts'
import type {
  ActionContext,
  ActionRequest,
  ActionType,
  CompiledText,
  Mail,
  Mailbox,
  PreparedAction,
  TemplateCompiler,
} from '../action.ts'
import { parseMailbox } from './mailbox.ts'
import { createMistakes, type Mistakes } from './mistakes.ts'
import { rendering, unusable } from './rendering.ts'
import { templateText } from './schema-parts.ts'

const schema = z.strictObject({
  to: z.union([templateText, z.array(templateText).min(1).max(50)]).describe('one address, or a list of them'),
  subject: templateText.optional(),
  text: templateText.optional(),
  html: templateText.optional(),
  template: z.string().optional().describe('the name of one of [email_templates], in place of subject, text and html'),
  data: z.record(z.string(), z.unknown()).optional().describe('further names for that template'),
})

type EmailConfig = z.infer<typeof schema>

export const email: ActionType<EmailConfig> = { type: 'email', schema, defaultRetry: 'service', prepare }

const WHAT = 'The e-mail'

function prepare(config: EmailConfig, context: ActionContext): PreparedAction {
  const { templates, mailer, providers, clock } = context
  const mistakes = createMistakes()
  const from = prepareFrom(mailer === null ? undefined : providers.smtp?.from, mistakes)
  const to = [config.to].flat().map((source, at) => prepareRecipient(source, at, config, templates, mistakes))
  const content = prepareContent(config, context, mistakes)
  mistakes.throwIfAny()

  const destination = 'email smtp'

  function compose({ idempotencyKey, scope }: Pick<ActionRequest, 'idempotencyKey' | 'scope'>): Mail {
    return rendering(WHAT, () => ({
      from,
      to: to.map((template) => toRecipient(template.render(scope))),
      ...content(scope),
      messageId: `<msg_${idempotencyKey}@${from.address.split('@')[1]}>`,
    }))
  }

  return {
    destination,
    singleAttempt: false,
    async run(request: ActionRequest) {
      const began = clock.monotonic()
      const { accepted } = await mailer!.send(compose(request), request.signal)
      const message = `taken for ${accepted} ${accepted === 1 ? 'recipient' : 'recipients'}`
      return { actionType: 'email', success: true, message, durationMs: clock.monotonic() - began }
    },
    preview: (request) => ({ actionType: 'email', destination, content: { ...compose(request) } }),
  }
}

function prepareFrom(written: string | undefined, mistakes: Mistakes): Mailbox {
  const from = written === undefined ? undefined : parseMailbox(written)
  if (written === undefined) {
    mistakes.add(
      [],
      'Mail is not configured, so an email action cannot be used. Add [providers.smtp] with url and from.',
    )
  } else if (from === undefined) {
    mistakes.add([], 'from of [providers.smtp] is not an address such as "Shop <shop@example.com>".')
  }
  return from ?? { name: '', address: '' }
}

function prepareRecipient(
  source: string,
  at: number,
  { to }: EmailConfig,
  templates: TemplateCompiler,
  mistakes: Mistakes,
): CompiledText {
  const path = typeof to === 'string' ? ['to'] : ['to', at]
  const template = mistakes.at(path, () => templates.text(source, 'plain', 'to'))
  if (template?.isConstant && parseMailbox(source) === undefined) {
    mistakes.add(
      path,
      `"${source.slice(0, 80)}" is not one e-mail address. For several, write a list: to = ["…", "…"].`,
    )
  }
  return template
}

/** An event must not be able to name a second recipient, so whatever is not exactly one address is refused. */
function toRecipient(text: string): Mailbox {
  const mailbox = parseMailbox(text)
  if (mailbox === undefined) throw unusable(WHAT, 'what `to` became is not one e-mail address')
  return mailbox
}

type Content = Pick<Mail, 'subject' | 'text' | 'html'>

function prepareContent(config: EmailConfig, context: ActionContext, mistakes: Mistakes): (scope: Scope) => Content {
  const { templates } = context
  const { source, base } = findSource(config, context, mistakes)
  const compile = (key: 'subject' | 'text' | 'html', target: 'plain' | 'html') => {
    const text = source[key]
    return text === undefined ? undefined : mistakes.at([...base, key], () => templates.text(text, target, key))
  }
  const [subject, text, html] = [compile('subject', 'plain'), compile('text', 'plain'), compile('html', 'html')]
  const data = mistakes.at(['data'], () => templates.tree(config.data ?? {}, 'data'))
  return (given) => {
    const scope = withNames(given, data.render(given))
    return {
      subject: toSubject(subject?.render(scope) ?? ''),
      ...(text && { text: text.render(scope) }),
      ...(html && { html: html.render(scope) }),
    }
  }
}

function findSource(config: EmailConfig, { emailTemplates }: ActionContext, mistakes: Mistakes) {
  const { template, subject, text, html, data } = config
  if (template === undefined) {
    if (subject === undefined) mistakes.add([], 'The mail has no `subject`. Write one, or name a `template`.')
    if (text === undefined && html === undefined) mistakes.add([], 'The mail is empty. Write `text`, `html` or both.')
    if (data !== undefined) mistakes.add(['data'], '`data` is for a `template`, and none is named.')
    return { source: { subject, text, html }, base: [] }
  }
  if (subject !== undefined || text !== undefined || html !== undefined) {
    mistakes.add(
      ['template'],
      'A `template` brings its own subject, text and html: leave yours out, or drop `template`.',
    )
  }
  const found = Object.hasOwn(emailTemplates, template) ? emailTemplates[template] : undefined
  if (found === undefined) {
    const nearest = closest(template, Object.keys(emailTemplates))
    const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
    mistakes.add(['template'], `There is no [email_templates.${template.slice(0, 60)}].${hint}`)
  } else if (found.text === undefined && found.html === undefined) {
    mistakes.add(['template'], `[email_templates.${template}] has neither text nor html.`)
  }
  return { source: found ?? {}, base: ['template'] }
}

/** The names of `data` stand beside the payload's fields and win over them. */
function withNames(scope: Scope, names: unknown): Scope {
  const fields = { ...scope.fields, ...(names as Record<string, unknown>) }
  return Object.create(scope, { fields: { value: fields, enumerable: true } })
}

function toSubject(text: string): string {
  if (/[\u0000-\u001f\u007f]|\p{Surrogate}/u.test(text))
    throw unusable(WHAT, 'its subject holds a line break or a control character')
  if (text.length > LONGEST_SUBJECT) throw unusable(WHAT, `its subject is longer than ${LONGEST_SUBJECT} characters`)
  return text
}

const LONGEST_SUBJECT = 900
