/** A browser's subscription as it arrives from outside: every part of it is checked before it is kept. Pure. */
import { createHash, ECDH } from 'node:crypto'
import { AftercommitError } from '../errors.ts'

/** What `PushSubscription.toJSON()` gives in a browser. */
export interface PushSubscriptionInput {
  readonly endpoint: string
  readonly keys: { readonly p256dh: string; readonly auth: string }
  readonly expirationTime?: number | null | undefined
}

export interface CheckedSubscription {
  readonly hash: string
  readonly endpoint: string
  readonly p256dh: string
  readonly auth: string
}

/** `refusalOf` says why an address may not be called. Throws BAD_PUSH_SUBSCRIPTION; the address is not repeated. */
export async function checkSubscription(
  given: unknown,
  refusalOf: (endpoint: string) => Promise<string | undefined>,
): Promise<CheckedSubscription> {
  const { endpoint, keys } = toTable(given, 'it')
  if (typeof endpoint !== 'string' || endpoint.length > LONGEST) throw bad('`endpoint` is not an address')
  if (!/^https:\/\//i.test(endpoint)) throw bad('`endpoint` does not begin with https://')
  const refusal = await refusalOf(endpoint)
  if (refusal !== undefined) throw bad(`\`endpoint\` is refused, because ${refusal}`)
  if (endpoint.startsWith(GCM)) throw bad('`endpoint` is of a service that was closed in 2019')
  const { p256dh, auth } = toTable(keys, '`keys`')
  if (!isPublicKey(p256dh)) throw bad('`keys.p256dh` is not a public key of P-256 as base64url')
  if (bytesOf(auth)?.length !== 16) throw bad('`keys.auth` is not 16 bytes as base64url')
  return { hash: hashOf(endpoint), endpoint, p256dh: p256dh as string, auth: auth as string }
}

/** What a subscription is known by. */
export function hashOf(endpoint: string): string {
  return createHash('sha256').update(endpoint).digest('base64url')
}

const LONGEST = 2_048
const GCM = 'https://android.googleapis.com/gcm/'

function toTable(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw bad(`${what} is not an object`)
}

/** A point that is not on the curve would fail with every message. */
function isPublicKey(value: unknown): boolean {
  const bytes = bytesOf(value)
  if (bytes?.length !== 65) return false
  try {
    ECDH.convertKey(bytes, 'prime256v1')
    return true
  } catch {
    return false
  }
}

function bytesOf(value: unknown): Buffer | undefined {
  return typeof value === 'string' && /^[\w-]{1,200}$/.test(value) ? Buffer.from(value, 'base64url') : undefined
}

function bad(problem: string): AftercommitError {
  return new AftercommitError(
    'BAD_PUSH_SUBSCRIPTION',
    `The push subscription was not registered: ${problem}. Send what PushSubscription.toJSON() gives in the browser.`,
  )
}
