/**
 * What is wrong with `[providers]` beyond its form: said when the file is loaded, and without repeating a value. What is
 * still a reference could not be resolved, which somebody else has reported.
 */
import { createECDH } from 'node:crypto'
import { reveal, type SecretText } from '../../configuration/index.ts'
import type { Providers, PushProvider, SmsProvider } from '../action.ts'
import { createMistakes, type Mistakes } from './mistakes.ts'

/** Throws one `PrepareError` with every mistake. */
export function checkProviders({ sms, push }: Providers): void {
  const mistakes = createMistakes()
  if (sms) checkSms(sms, mistakes)
  if (push) checkPush(push, mistakes)
  mistakes.throwIfAny()
}

function checkSms({ account, from, baseUrl }: SmsProvider, mistakes: Mistakes): void {
  const at = (key: string, message: string) => mistakes.add(['providers', 'sms', key], message)
  if (isWrong(account, (text) => /^[\w-]{1,64}$/.test(text)))
    at('account', 'is not the id of an account: letters, digits, _ and - only.')
  if (isWrong(from, isSender)) {
    at(
      'from',
      'is not a sender: give a number like +4915112345678, a short code, a name of up to 11 letters and digits, or the ' +
        'id of a messaging service.',
    )
  }
  if (baseUrl !== undefined && isWrong(baseUrl, isBase))
    at('base_url', 'is not the address of an API: leave out user, password, query and fragment.')
}

function isSender(text: string): boolean {
  return /^(\+[1-9]\d{1,14}|\d{3,8}|MG[0-9a-f]{32}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/i.test(text)
}

function isBase(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return /^https?:$/.test(protocol) && username + password + search + hash === ''
}

function checkPush({ subject, publicKey, privateKey }: PushProvider, mistakes: Mistakes): void {
  const at = (key: string, message: string) => mistakes.add(['providers', 'push', key], message)
  if (isWrong(subject, isSubject))
    at('subject', 'must be an address like mailto:ops@example.com or https://example.com.')
  const isPublicWrong = isWrong(publicKey, (text) => bytesOf(text)?.length === 65)
  const isPrivateWrong = isWrong(privateKey, (text) => bytesOf(text)?.length === 32)
  if (isPublicWrong) at('public_key', `is not a public VAPID key: 65 bytes as base64url. ${MAKE}`)
  if (isPrivateWrong) at('private_key', `is not a private VAPID key: 32 bytes as base64url. ${MAKE}`)
  const isKnown = [publicKey, privateKey].every((key) => !isUnresolved(reveal(key)))
  if (!isPublicWrong && !isPrivateWrong && isKnown && !isPair(reveal(publicKey), reveal(privateKey)))
    at('public_key', `does not belong to private_key. ${MAKE}`)
}

const MAKE = 'Make a pair with: npx web-push generate-vapid-keys'

function isSubject(text: string): boolean {
  return /^mailto:[^\s@]+@[^\s@]+$/.test(text) || (text.startsWith('https://') && URL.canParse(text))
}

function isPair(publicKey: string, privateKey: string): boolean {
  try {
    const curve = createECDH('prime256v1')
    curve.setPrivateKey(Buffer.from(privateKey, 'base64url'))
    return curve.getPublicKey('base64url') === publicKey
  } catch {
    return false
  }
}

function bytesOf(text: string): Buffer | undefined {
  return /^[\w-]+$/.test(text) ? Buffer.from(text, 'base64url') : undefined
}

function isWrong(setting: SecretText, isRight: (text: string) => boolean): boolean {
  const text = reveal(setting)
  return !isUnresolved(text) && !isRight(text)
}

function isUnresolved(text: string): boolean {
  return text.includes(`\${env:`)
}
