/**
 * Reads the answer of the API to a message. A 2xx means that the message was taken, whatever else the body holds: another attempt
 * would send it again. Only a body that says `failed` or `undelivered` is a refusal then. Of refusals, the number in the body
 * says more than the status: 21… is about this message and stays wrong, 20429 is about the pace. Pure.
 */
import { isMessageId } from '../../sms/index.ts'
import type { Answer } from '../network/index.ts'
import type { Received } from '../observer-error.ts'
import { isTransientStatus } from './call-http.ts'
import { hide, toReceived } from './record.ts'

export type SmsVerdict =
  | { readonly kind: 'taken'; readonly sid: string | null; readonly status: string }
  | { readonly kind: 'refused'; readonly code: number | null; readonly transient: boolean }

export interface SmsAnswer {
  readonly verdict: SmsVerdict
  /** Fit for a run record: numbers and texts are not in it. */
  readonly response: Received
}

export function readSmsAnswer(answer: Answer, secrets: readonly string[]): SmsAnswer {
  const { status } = answer
  const body = toTable(answer.start)
  if (body === undefined) {
    const verdict = isTaken(status) ? taken(null, 'accepted') : refused(null, status)
    return { verdict, response: toReceived(answer, secrets) }
  }
  const sid = isMessageId(body.sid) ? body.sid : null
  const state = typeof body.status === 'string' && WORD.test(body.status) ? body.status : 'accepted'
  // An error has its number under `code`; a message that failed at once has it under `error_code`.
  const code = toCode(body.code) ?? toCode(body.error_code)
  if (isTaken(status) && state !== 'failed' && state !== 'undelivered') {
    return { verdict: taken(sid, state), response: kept(status, { sid, status: state }) }
  }
  const said = typeof body.message === 'string' ? withoutNumbers(hide(body.message, secrets)) : undefined
  return { verdict: refused(code, status), response: kept(status, { code, sid, message: said }) }
}

function isTaken(status: number): boolean {
  return status >= 200 && status < 300
}

function taken(sid: string | null, status: string): SmsVerdict {
  return { kind: 'taken', sid, status }
}

function refused(code: number | null, status: number): SmsVerdict {
  return { kind: 'refused', code, transient: isTransient(code, status) }
}

function isTransient(code: number | null, status: number): boolean {
  if (code !== null && PASSING.has(code)) return true
  if (code !== null && code >= 21_000 && code < 22_000) return false
  return isTransientStatus(status)
}

/** Too many requests, a fault of the API, a queue that is full. */
const PASSING: ReadonlySet<number> = new Set([20_429, 20_500, 20_503, 20_504, 21_611, 30_001])
const WORD = /^[a-z_]{1,20}$/

function toTable(start: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(start.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function toCode(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}

function kept(status: number, facts: Record<string, unknown>): Received {
  return toReceived({ status, retryAfter: undefined, start: Buffer.from(JSON.stringify(facts)) }, [])
}

/** The API quotes the number it does not like, in whichever spelling. */
function withoutNumbers(text: string): string {
  return text.replace(/\+?\d(?:[\d\s().-]{4,})\d/g, '***')
}
