/** `[providers.*]`: the operator's accounts at other people's services. Every value may be a reference. */
import { z } from 'zod'
import { needed, orReference, setting, table } from './fields.ts'

const SECRET = orReference(String.raw`(?!.*\$\{env:).+`, 'must be text that is not empty')
const HTTP_URL = orReference(String.raw`https?:\/\/\S+`, 'must be a URL that begins with https:// or http://')
const LANGUAGE = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/, {
  message: 'must be the plain name of a text search configuration, such as "english"',
})

export const providers = table('Other people’s services. An action whose provider is not here is refused.', {
  slack: table('Slack, by an incoming webhook.', {
    webhook_url: needed(HTTP_URL, { description: 'The address that Slack gave you.' }),
  }).optional(),
  smtp: table('E-mail.', {
    url: needed(orReference(String.raw`smtps?:\/\/\S+`, 'must be a URL that begins with smtp:// or smtps://'), {
      description: 'The mail server, with user and password.',
    }),
    from: needed(SECRET, { description: 'The sender of every mail.' }),
  }).optional(),
  sms: table('Text messages, by an API like that of Twilio.', {
    account: needed(SECRET, { description: 'The id of the account.' }),
    token: needed(SECRET, { description: 'The token of the account.' }),
    from: needed(SECRET, { description: 'The number that messages come from.' }),
    base_url: setting(HTTP_URL, { description: 'The address of the API, when it is not the usual one.' }),
  }).optional(),
  push: table('Web push.', {
    subject: needed(SECRET, { description: 'Who is to be asked about the messages: mailto:… or https://…' }),
    public_key: needed(SECRET, { description: 'The public VAPID key.' }),
    private_key: needed(SECRET, { description: 'The private VAPID key.' }),
  }).optional(),
  search: table('A search engine.', {
    kind: needed(z.enum(['postgres', 'elasticsearch', 'opensearch', 'meilisearch']), {
      description: 'Which one; "postgres" searches in this database.',
    }),
    url: setting(HTTP_URL, { description: 'Where it is; not for "postgres".' }),
    api_key: setting(SECRET, { description: 'What it wants to be shown.' }),
    language: setting(LANGUAGE, {
      fallback: 'simple',
      description: 'Only for "postgres": how text becomes words; a name of pg_ts_config.',
    }),
  })
    .superRefine(({ kind, url, language }, context) => {
      if (kind !== 'postgres' && language !== undefined) {
        const message = `has no use with kind = "${kind}", which has settings of its own. Remove it.`
        context.addIssue({ code: 'custom', path: ['language'], message })
      }
      if ((kind === 'postgres') === (url === undefined)) return
      const message =
        kind === 'postgres' ? 'has no use with kind = "postgres". Remove it.' : `is missing. ${kind} needs it.`
      context.addIssue({ code: 'custom', path: ['url'], message })
    })
    .optional(),
})
