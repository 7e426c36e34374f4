/** `type = "sms"`: a text message through `[providers.sms]`, an API like Twilio's. */
import { z } from 'zod'
import type {
  ActionContext,
  ActionRequest,
  ActionType,
  CompiledText,
  PreparedAction,
  TemplateCompiler,
} from '../action.ts'
import { parseRetryAfter } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { askHttp } from './call-http.ts'
import { createMistakes } from './mistakes.ts'
import { constantText, rendering } from './rendering.ts'
import { templateText } from './schema-parts.ts'
import { readSmsAnswer } from './sms-answer.ts'
import { createSmsApi } from './sms-api.ts'

const schema = z.strictObject({
  to: templateText.describe('one number with its country, like +4915112345678'),
  message: templateText.describe('plain text of at most 1,600 characters'),
  status_callback: z
    .string()
    .regex(/^https?:\/\/[^\s#]+$/, { message: 'must be a URL that begins with https:// or http://' })
    .optional()
    .describe('where the API tells what became of the message; see ac.sms.statusCallback()'),
})

type SmsConfig = z.infer<typeof schema>

export const sms: ActionType<SmsConfig> = { type: 'sms', schema, defaultRetry: 'service', prepare }

const LONGEST = 1_600
const TIMEOUT_MS = 30_000
/** The answer repeats the message before it names its id. */
const ANSWER_BYTES = 32_768

interface Message {
  readonly to: string
  readonly text: string
}

function prepare(config: SmsConfig, { templates, unguarded, clock, providers }: ActionContext): PreparedAction {
  const mistakes = createMistakes()
  if (providers.sms === undefined) mistakes.add([], NO_PROVIDER)
  const to = mistakes.at(['to'], () => compile(config.to, 'to', numberProblem, templates))
  const message = mistakes.at(['message'], () => compile(config.message, 'message', textProblem, templates))
  mistakes.throwIfAny()

  const api = createSmsApi(providers.sms!)
  const destination = `sms ${api.origin}`
  const what = `The SMS through ${api.origin}`

  function compose({ scope }: Pick<ActionRequest, 'scope'>): Message {
    const made = rendering(what, () => ({ to: to.render(scope), text: message.render(scope) }))
    const problem = numberProblem(made.to) ?? textProblem(made.text)
    if (problem === undefined) return made
    throw new ObserverError('OB009', `${what} was not sent: ${problem}. Correct the template or the data it is given.`)
  }

  function toForm({ to, text }: Message, eventId: string): string {
    const form = new URLSearchParams([['To', to], [...api.sender], ['Body', text]])
    if (config.status_callback !== undefined) form.set('StatusCallback', callbackFor(config.status_callback, eventId))
    return form.toString()
  }

  return {
    destination,
    singleAttempt: false,
    async run(request) {
      const began = clock.monotonic()
      const made = compose(request)
      const answer = await askHttp(
        unguarded,
        {
          method: 'POST',
          target: api.messages,
          headers: api.headers,
          body: toForm(made, request.event.id),
          timeoutMs: TIMEOUT_MS,
          keepBytes: ANSWER_BYTES,
          signal: request.signal,
        },
        { what, code: 'OB009', timeoutCode: 'OB009', sent: api.sent },
      )
      const { verdict, response } = readSmsAnswer(answer, [...api.secrets, ...formsOf(made)])
      const detail = { request: api.sent, response }
      if (verdict.kind === 'refused') {
        const { code, transient } = verdict
        throw new ObserverError('OB009', `${what} was ${refusal(answer.status, code)}. ${adviceFor(transient)}`, {
          ...{ transient, status: answer.status, detail },
          retryAfterMs: transient ? parseRetryAfter(answer.retryAfter, clock.now()) : undefined,
        })
      }
      const durationMs = clock.monotonic() - began
      const said = verdict.sid === null ? `${verdict.status} without an id` : `${verdict.status} as ${verdict.sid}`
      return { actionType: 'sms', success: true, message: said, durationMs, ...detail }
    },
    preview(request) {
      const { to, text } = compose(request)
      return { actionType: 'sms', destination, content: { to, message: text, characters: text.length } }
    },
  }
}

const NO_PROVIDER =
  'SMS is not configured, so an sms action cannot be used. Add [providers.sms] with account, token and from.'

/** One without holes is looked at now rather than with the first event. */
function compile(
  source: string,
  key: 'to' | 'message',
  problemOf: (text: string) => string | undefined,
  templates: TemplateCompiler,
): CompiledText {
  const template = templates.text(source, 'plain', key)
  const constant = constantText(template)
  const problem = constant === undefined ? undefined : problemOf(constant)
  if (problem !== undefined) throw new ObserverError('OB012', `The SMS could never be sent: ${problem}.`)
  return template
}

/** As E.164 has it. Whatever else an event brings is not guessed at: it would reach somebody. */
function numberProblem(text: string): string | undefined {
  if (/^\+[1-9]\d{1,14}$/.test(text)) return undefined
  return 'what `to` became is not one number like +4915112345678, with + and country, without spaces'
}

function textProblem(text: string): string | undefined {
  if (text.trim() === '') return 'its message is empty'
  if (text.length <= LONGEST) return undefined
  return `its message has ${text.length} characters, and ${LONGEST} is the most`
}

/**
 * The API signs the whole address, so the event that comes back with it can be believed. Servers read the one character
 * that is left as `%27`, and would then check another address than the signed one.
 */
function callbackFor(url: string, eventId: string): string {
  const id = encodeURIComponent(eventId).replaceAll("'", '%27')
  return `${url}${url.includes('?') ? '&' : '?'}aftercommit_event=${id}`
}

/** As an answer may repeat them. */
function formsOf({ to, text }: Message): string[] {
  return [to, to.slice(1), text].flatMap((one) => [
    one,
    one.replaceAll(' ', '+'),
    encodeURIComponent(one),
    new URLSearchParams({ one }).toString().slice('one='.length),
    JSON.stringify(one).slice(1, -1),
  ])
}

function refusal(status: number, code: number | null): string {
  return `answered with ${status}${code === null ? '' : ` (error ${code})`}`
}

function adviceFor(transient: boolean): string {
  return transient
    ? 'It is tried again as configured.'
    : 'It is not tried again. Look at the answer in the run record, correct the number or [providers.sms], then redrive ' +
        'the dead letter.'
}
