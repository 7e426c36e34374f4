/**
 * Standard Webhooks, scheme `v1`: HMAC-SHA256 over `id.timestamp.body`. The id stays the same over all attempts, the
 * timestamp is that of the attempt, and while a secret is being replaced there is one signature per secret.
 * `verifyWebhook` is the other side, for receivers.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { AftercommitError } from './errors.ts'
import { type Duration, toMs } from './runtime/index.ts'

/** A prepared secret. Made once per action: decoding is not repeated for every call. */
export type SigningKey = Buffer

/** `whsec_` followed by base64, or any other text, taken as it is. Throws for what cannot protect anything. */
export function toSigningKey(secret: string): SigningKey {
  if (!secret.startsWith(PREFIX)) {
    if (Buffer.byteLength(secret) < SHORTEST_TEXT) throw badSecret(`is shorter than ${SHORTEST_TEXT} bytes`)
    return Buffer.from(secret)
  }
  const encoded = secret.slice(PREFIX.length)
  if (!BASE64.test(encoded)) throw badSecret(`does not go on with base64 behind "${PREFIX}"`)
  const key = Buffer.from(encoded, 'base64')
  if (key.length < SHORTEST_KEY) throw badSecret(`has fewer than ${SHORTEST_KEY} bytes behind "${PREFIX}"`)
  return key
}

const PREFIX = 'whsec_'
const SHORTEST_KEY = 24
const SHORTEST_TEXT = 8
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** The value of `webhook-signature`. `seconds` is the Unix time that goes into `webhook-timestamp`. */
export function signWebhook(keys: readonly SigningKey[], id: string, seconds: number, body: string): string {
  const signed = `${id}.${seconds}.${body}`
  return keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ')
}

export interface VerifyWebhookOptions {
  /** The oldest webhook to accept, and the furthest one may lie ahead of this clock. Default: "5m". */
  readonly tolerance?: Duration | undefined
  /** The time to judge by, for tests. Default: now. */
  readonly now?: Date | undefined
}

/** Headers as Node's `http`, Express or a plain object give them, or as `Headers` of a fetch-style request. */
export type ReceivedHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | { get(name: string): string | null }

/**
 * For receivers. Returns the id of the message, by which a repetition is known; throws `BAD_SIGNATURE` for a
 * webhook that was not signed with one of the secrets, or not within `tolerance` of now. `rawBody` must be the bytes as they arrived:
 * parsing and writing JSON again changes them.
 *
 * ```ts
 * const { id } = verifyWebhook(process.env.WEBHOOK_SECRET!, request.headers, rawBody)
 * ```
 */
export function verifyWebhook(
  secret: string | readonly string[],
  headers: ReceivedHeaders,
  rawBody: string | Uint8Array,
  { tolerance = '5m', now = new Date() }: VerifyWebhookOptions = {},
): { id: string; timestamp: Date } {
  const toleranceMs = toMs(tolerance, 'tolerance')
  if (!(now instanceof Date) || Number.isNaN(now.getTime()))
    throw new AftercommitError('BAD_OPTION', '`now` is not a valid date, so no webhook can be verified.')
  const keys = toKeys(secret)
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array)) throw notRaw()
  const id = read(headers, 'webhook-id')
  // The signature covers `id.timestamp.body`: with a dot in the id, parts of the body could pass for the timestamp.
  if (id.includes('.')) throw refused('the header "webhook-id" contains a dot')
  const stamp = read(headers, 'webhook-timestamp')
  const signatures = read(headers, 'webhook-signature')
  if (!/^\d{1,12}$/.test(stamp)) throw refused('"webhook-timestamp" is not a number of seconds')
  const seconds = Number(stamp)
  const ageMs = (Math.floor(now.getTime() / 1_000) - seconds) * 1_000
  if (ageMs > toleranceMs) throw refused('it is too old')
  if (-ageMs > toleranceMs) throw refused('its time lies in the future')
  if (!isSigned(keys, signatures, `${id}.${stamp}.`, rawBody)) throw refused('no signature fits')
  return { id, timestamp: new Date(seconds * 1_000) }
}

function toKeys(secret: string | readonly string[]): SigningKey[] {
  const secrets = typeof secret === 'string' ? [secret] : secret
  if (!Array.isArray(secrets) || secrets.some((one) => typeof one !== 'string'))
    throw badSecret('is missing or not text')
  if (secrets.length === 0) throw badSecret('is an empty list')
  return secrets.map(toSigningKey)
}

function notRaw(): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    'The body of a webhook is neither text nor bytes, so nothing can be verified. Give the bytes as they arrived: with ' +
      "Express, mount `express.raw({ type: '*/*' })` in place of `express.json()`.",
  )
}

/** Every key meets every signature, whatever was found before, so that the time taken tells nothing. */
function isSigned(keys: readonly SigningKey[], header: string, start: string, body: string | Uint8Array): boolean {
  const given = header
    .split(' ', MOST_SIGNATURES)
    .filter((part) => part.startsWith('v1,'))
    .map((part) => Buffer.from(part.slice(3), 'base64'))
  let found = false
  for (const key of keys) {
    const expected = digest(key, start, body)
    for (const signature of given) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) found = true
    }
  }
  return found
}

const MOST_SIGNATURES = 16

function digest(key: SigningKey, start: string, body: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(start).update(body).digest()
}

function read(headers: ReceivedHeaders, name: string): string {
  const value = isHeaders(headers) ? headers.get(name) : findHeader(headers, name)
  if (typeof value !== 'string' || value === '') throw refused(`the header "${name}" is missing`)
  return value
}

function isHeaders(headers: ReceivedHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}

function findHeader(headers: Readonly<Record<string, string | readonly string[] | undefined>>, name: string): unknown {
  for (const [key, value] of Object.entries(headers)) if (key.toLowerCase() === name) return value
  return undefined
}

function refused(reason: string): AftercommitError {
  return new AftercommitError(
    'BAD_SIGNATURE',
    `The webhook is refused: ${reason}. Answer 400 and change nothing. If it should have passed, check that the secret ` +
      'is the sender’s and that the body given is the bytes as they arrived.',
  )
}

function badSecret(reason: string): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `The webhook secret ${reason}, so nothing is signed or verified with it. Make one with ` +
      "`node -p \"'whsec_' + crypto.randomBytes(32).toString('base64')\"`.",
  )
}
