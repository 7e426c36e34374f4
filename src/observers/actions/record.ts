/**
 * What run records keep of a call. They are read by people and kept for days, so nothing goes in that could be used:
 * no bodies, no values of the query, no headers but harmless ones, and of the answer a few characters made safe.
 */
import { printable } from '../../printable.ts'
import { isSecretName, maskSecrets } from '../../runtime/index.ts'
import type { Answer } from '../network/index.ts'
import type { Received } from '../observer-error.ts'

const MASK = '***'
const LONGEST_EXCERPT = 200

export function maskUrl(url: URL): string {
  const path = url.pathname
    .split('/')
    .map((part) => (looksLikeToken(part) ? MASK : part))
    .join('/')
  const query = [...url.searchParams.keys()].map((name) => `${encodeURIComponent(name)}=${MASK}`).join('&')
  return `${url.origin}${path}${query === '' ? '' : `?${query}`}`
}

/** Capability URLs carry their secret in the path. Long mixtures of letters and digits are taken for one, UUIDs not. */
export function looksLikeToken(part: string): boolean {
  return part.length >= 20 && /[a-z]/i.test(part) && /\d/.test(part) && !UUID.test(part)
}

/** What a receiver must not get into the records by repeating its own address: what `maskUrl` masks. */
export function secretsOfUrl({ pathname, search, searchParams }: URL): string[] {
  const written = search.split(/[?&]/).map((pair) => pair.slice(pair.indexOf('=') + 1))
  return [...pathname.split('/').filter(looksLikeToken), ...written, ...searchParams.values()].filter(isWorthHiding)
}

/** Of name, value, name, value …; of `Bearer abc…` a receiver may repeat the second word alone. */
export function secretsOfHeaders(list: readonly string[]): string[] {
  const values = list.filter((_, at) => at % 2 === 1 && !HARMLESS.has(list[at - 1]!.toLowerCase()))
  return [...values, ...values.flatMap((value) => value.split(/\s+/)).filter(isWorthHiding)]
}

/** Shorter ones are words and numbers that answers are full of. */
function isWorthHiding(value: string): boolean {
  return value.length >= 8
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const HARMLESS = new Set(['content-type', 'user-agent', 'accept', 'traceparent', 'webhook-id', 'webhook-timestamp'])

export function maskHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, HARMLESS.has(name.toLowerCase()) ? value : MASK]),
  )
}

/** For the eyes of the operator who asked for a preview: only what is a secret by origin or by name is masked. */
export function isMaskedInPreview(name: string, isConstantSecret: boolean): boolean {
  return isConstantSecret || isSecretName(name)
}

export function toReceived({ status, start }: Answer, secrets: readonly string[]): Received {
  return { status, body: excerpt(start.toString('utf8'), secrets) }
}

/** Masked before it is cut, since half a secret is not recognised; escaped last, so that it can be stored and shown. */
function excerpt(text: string, secrets: readonly string[]): string {
  if (text === '') return ''
  const masked = hide(text, secrets)
  // Most answers are a word, and need none of this.
  if (/^[a-z ]{0,20}$/i.test(masked)) return masked
  return printable([...maskSecrets(masked)].slice(0, LONGEST_EXCERPT).join(''))
}

/** The same text without these. */
export function hide(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => (secret.length >= 4 ? rest.replaceAll(secret, MASK) : rest), text)
}
