/** How an SMS API like Twilio's signs what it tells us. Pure. */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** HMAC-SHA1 over the address and the parameters, sorted by name, as base64. */
export function signCallback(token: string, url: string, parameters: URLSearchParams): string {
  const names = [...new Set(parameters.keys())].sort()
  // Of a name that comes twice, each value counts once.
  const pairs = names.flatMap((name) => [...new Set(parameters.getAll(name))].sort().map((value) => name + value))
  return createHmac('sha1', token)
    .update(url + pairs.join(''), 'utf8')
    .digest('base64')
}

/** Takes the same time wherever the two differ. */
export function isSignature(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
