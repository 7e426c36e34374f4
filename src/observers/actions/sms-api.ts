/** The API that `[providers.sms]` names: how its requests look, and what may be kept of them. */
import { reveal } from '../../configuration/index.ts'
import type { SmsProvider } from '../action.ts'
import { type Target, toTarget } from '../network/index.ts'
import type { SentRequest } from '../observer-error.ts'

export interface SmsApi {
  readonly origin: string
  /** Where messages are posted to. */
  readonly messages: Target
  /** Where the account can be looked at, which sends nothing. */
  readonly account: Target
  /** The field that says who sends, and its value. */
  readonly sender: readonly [field: string, value: string]
  /** Name, value, name, value … */
  readonly headers: readonly string[]
  readonly sent: SentRequest
  /** What must not come back into a record. */
  readonly secrets: readonly string[]
}

const USUAL = 'https://api.twilio.com'
const VERSION = '2010-04-01'

/** Of a provider that was checked: see check-providers.ts. */
export function createSmsApi({ account, token, from, baseUrl = USUAL }: SmsProvider): SmsApi {
  const [name, password, sender] = [reveal(account), reveal(token), reveal(from)]
  const base = reveal(baseUrl).replace(/\/+$/, '')
  const { origin } = new URL(base)
  const basic = Buffer.from(`${name}:${password}`).toString('base64')
  const place = `${base}/${VERSION}/Accounts/${encodeURIComponent(name)}`
  const plain = { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'aftercommit' }
  return {
    origin,
    messages: toTarget(new URL(`${place}/Messages.json`)),
    account: toTarget(new URL(`${place}.json`)),
    sender: [MESSAGING_SERVICE.test(sender) ? 'MessagingServiceSid' : 'From', sender],
    headers: ['authorization', `Basic ${basic}`, 'accept', 'application/json', ...Object.entries(plain).flat()],
    sent: {
      method: 'POST',
      url: `${origin}/${VERSION}/Accounts/***/Messages.json`,
      headers: { authorization: '***', ...plain },
    },
    secrets: [password, basic, name, sender],
  }
}

const MESSAGING_SERVICE = /^MG[0-9a-f]{32}$/i
