/** Keys of push messages, as `web-push generate-vapid-keys` prints them. */
import type { ECDH } from 'node:crypto'

/** One in 256 begins with a zero, which Node leaves out. */
export function privateKeyOf(curve: ECDH): string {
  const key = curve.getPrivateKey()
  return Buffer.concat([Buffer.alloc(32 - key.length), key]).toString('base64url')
}
