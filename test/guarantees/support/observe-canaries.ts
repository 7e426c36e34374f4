/** Secrets that can be told from everything else, rules that use each of them, and the search for them. */
import { createECDH, randomBytes } from 'node:crypto'
import type pg from 'pg'
import type { Reply } from '../../support/receivers.ts'
import { LOOPBACK } from './observe.ts'

const PLACES = [
  ...(['database', 'smtp', 'wrongSmtp', 'slack', 'signing', 'bearer', 'apiKey', 'path', 'query', 'code'] as const),
  ...(['listed', 'userinfo', 'mistaken', 'sms', 'vapid'] as const),
]

export type Canaries = Record<(typeof PLACES)[number], string>

/** Letters and digits only: nothing that writes them down has to escape anything. */
export function hatchCanaries(databaseUrl: string): Canaries {
  const birds = Object.fromEntries(PLACES.map((place) => [place, `canary${place}${randomBytes(9).toString('hex')}`]))
  // A server that asks for its password gets that one.
  const [, own] = /^\w+:\/\/[^:@/]+:([^@]{12,})@/.exec(databaseUrl) ?? []
  return { ...(birds as Canaries), vapid: hatchKey(), ...(own !== undefined && { database: own }) }
}

/** A private key has a form of its own. One that begins with a zero would be written in another way. */
function hatchKey(): string {
  const curve = createECDH('prime256v1')
  curve.generateKeys()
  return curve.getPrivateKey().length === 32 ? curve.getPrivateKey('base64url') : hatchKey()
}

export function publicKeyOf(privateKey: string): string {
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(Buffer.from(privateKey, 'base64url'))
  return curve.getPublicKey('base64url')
}

/** A server that asks for no password takes any. */
export function withPassword(url: string, password: string): string {
  return url.replace(/^(\w+:\/\/[^:@/]+)@/, `$1:${password}@`)
}

/** Every place where the text of a canary, or what it is often turned into, can be read. */
export function findCanaries(told: Readonly<Record<string, string>>, canaries: Canaries): string[] {
  return Object.entries(told).flatMap(([place, text]) =>
    Object.entries(canaries).flatMap(([name, canary]) =>
      formsOf(canary)
        .filter((form) => text.includes(form))
        .map((form) => `${name} in ${place}: ${excerptAround(text, form)}`),
    ),
  )
}

function formsOf(canary: string): string[] {
  // Base64 of the middle, at each of the three places where a group of letters can begin.
  const shifted = [0, 1, 2].map((skip) => Buffer.from(canary.slice(skip)).toString('base64').slice(0, 24))
  return [canary, encodeURIComponent(canary), Buffer.from(canary).toString('hex'), ...shifted].filter(
    (form, at, all) => all.indexOf(form) === at,
  )
}

function excerptAround(text: string, form: string): string {
  const at = text.indexOf(form)
  return JSON.stringify(text.slice(Math.max(0, at - 80), at + form.length + 20))
}

interface Receivers {
  readonly hooks: Readonly<Record<string, string>>
  /** One that is tried again in an hour. */
  readonly later: string
}

const QUICK = 'retry = { max_attempts = 2, schedule = ["20ms"] }'

/** Rules that all fail, with a secret wherever one can be. The last two fail before they call anybody. */
export function canaryRules({ hooks, later }: Receivers, canaries: Canaries, smtpVariable: string): string {
  const silent = hooks.silent!
  return `database = "\${env:DATABASE_URL}"
${LOOPBACK}
[templates]
env = ["LISTED"]
[providers.slack]
webhook_url = "\${env:SLACK_URL}"
[providers.smtp]
url = "\${env:${smtpVariable}}"
from = "shop@example.com"
[providers.sms]
account = "AC1"
token = "\${env:SMS_TOKEN}"
from = "+12025550123"
base_url = "\${env:SMS_URL}"
[providers.push]
subject = "mailto:shop@example.com"
public_key = "\${env:VAPID_PUBLIC}"
private_key = "\${env:VAPID_PRIVATE}"
[observers.sms]
on = "lamp.lit"
${QUICK}
actions = [{ type = "sms", to = "+4915198765432", message = "lit" }]
[observers.push]
on = "lamp.lit"
${QUICK}
actions = [{ type = "push", user = "ada", title = "lit" }]
[observers.slack]
on = "lamp.lit"
${QUICK}
actions = [{ type = "slack", message = "lit" }]
[observers.email]
on = "lamp.*"
${QUICK}
actions = [{ type = "email", to = "ada@example.com", subject = "lit", text = "lit" }]
${Object.entries(hooks)
  .map(([name, url]) => hook({ name, url }, canaries))
  .join('')}
${hook({ name: 'later', url: later, retry: 'retry = { schedule = ["1h"] }' }, canaries)}
${hook({ name: 'template', url: silent, more: 'body = { value = "{{ int(env.LISTED) }}" }' }, canaries)}
${hook({ name: 'condition', url: silent, condition: 'int(env.LISTED) > 0' }, canaries)}
`
}

/** How many of these rules end in a dead letter for one event `lamp.lit`, all but `later`. */
export function deadPerLamp({ hooks }: Receivers): number {
  return Object.keys(hooks).length + 6
}

interface Hook {
  readonly name: string
  readonly url: string
  readonly retry?: string
  readonly condition?: string
  readonly more?: string
}

function hook({ name, url, retry = QUICK, condition = "env.LISTED != ''", more = '' }: Hook, canaries: Canaries) {
  return `
[observers.${name}]
on = "lamp.lit"
condition = "${condition}"
${retry}
[[observers.${name}.actions]]
type = "webhook"
url = "${url}/hooks/${canaries.path}?sig=${canaries.query}&code=${canaries.code}"
headers = { authorization = "Bearer \${env:BEARER}", x-api-key = "\${env:API_KEY}" }
secret = "\${env:SIGNING}"
timeout = "200ms"
${more}
`
}

/** Files that are refused, with a secret in everything that is wrong with them. */
export function brokenRules({ mistaken, userinfo }: Canaries): Readonly<Record<'mistakes' | 'syntax', string>> {
  const mistakes = `database = "postgre://app:${mistaken}@db/shop"
${LOOPBACK}
[providers.slack]
webhook_url = "htps://hooks.slack.com/services/${mistaken}"
[providers.smtp]
url = "stmp://shop:${mistaken}@mail.example.com"
from = "shop@example.com"
pasword = "${mistaken}"
[observers.call]
on = "lamp.lit"
[[observers.call.actions]]
name = "one"
type = "webhook"
url = "http://shop:${userinfo}@127.0.0.1/"
[[observers.call.actions]]
name = "two"
type = "webhook"
url = "http://127.0.0.1/"
secret = "whsec_?${mistaken}"
headers = { "bad name" = "${mistaken}", x-line = "${mistaken}\\n" }
api_token = "${mistaken}"
`
  const syntax = `[observers.call]
on = "lamp.lit"
[[observers.call.actions]]
type = "webhook"
url = "https://erp.example.com"
headers = { authorization = "Bearer ${mistaken}", }}
secret = "${mistaken}
`
  return { mistakes, syntax }
}

/** Answers 500 with what `say` makes of the call. */
export function repeating(say: (call: Parameters<Reply>[1]) => string): Reply {
  return (response, call) => void response.writeHead(500, { 'content-type': 'text/plain' }).end(say(call))
}

/** Every row of every table as text, by table. */
export async function readAllTables(sql: pg.Client): Promise<Record<string, string>> {
  const { rows } = await sql.query(
    `select c.relname as table
       from pg_class c
      where c.relnamespace = 'aftercommit'::regnamespace and c.relkind = 'r'`,
  )
  const told: Record<string, string> = {}
  for (const { table } of rows) {
    const found = await sql.query(`select to_jsonb(t)::text as row from aftercommit.${table} t`)
    told[`table ${table}`] = found.rows.map(({ row }) => row).join('\n')
  }
  return told
}
