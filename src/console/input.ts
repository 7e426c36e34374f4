/** Reads what a request asks for. A value that does not do is refused by its name. */
import type { ConsoleUser } from './access.ts'
import { Refusal } from './answers.ts'

export function limitOf(query: URLSearchParams, most = 200): number {
  const text = query.get('limit')
  if (text === null) return 50
  const limit = Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit
  throw new Refusal(400, 'BAD_LIMIT', `limit must be a whole number from 1 to ${most}.`)
}

export function positionOf(query: URLSearchParams, name: string): bigint | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  throw new Refusal(400, 'BAD_CURSOR', `${name} must be a number.`)
}

export function textOf(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined
}

export function oneOf<const T extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly T[],
): T | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const found = known.find((one) => one === text)
  if (found !== undefined) return found
  throw new Refusal(400, 'BAD_VALUE', `${name} is one of ${known.join(', ')}.`)
}

export function timeOf(query: URLSearchParams, name: string): Date | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const ago = /^(\d{1,6})(s|m|h|d)$/.exec(text)
  const time = ago ? new Date(Date.now() - Number(ago[1]) * SECONDS[ago[2]!]! * 1_000) : new Date(text)
  if (Number.isFinite(time.getTime())) return time
  throw new Refusal(400, 'BAD_TIME', `${name} is a time, or how long ago, like 15m or 2h.`)
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

export function idsOf(body: Readonly<Record<string, unknown>>): bigint[] {
  const { ids } = body
  if (Array.isArray(ids) && ids.length > 0 && ids.length <= 1_000 && ids.every((id) => /^\d{1,18}$/.test(String(id)))) {
    return ids.map((id) => BigInt(String(id)))
  }
  throw new Refusal(400, 'BAD_IDS', '`ids` must be a list of 1 to 1,000 numbers.')
}

export function wordOf(body: Readonly<Record<string, unknown>>, name: string): string {
  const value = body[name]
  if (typeof value === 'string' && value !== '' && value.length <= 1_000) return value
  throw new Refusal(400, 'BAD_VALUE', `\`${name}\` must be text.`)
}

/** For the audit: who acted, from where, and why. */
export function actionOf(user: ConsoleUser, body: Readonly<Record<string, unknown>>): { who: string; reason?: string } {
  const { reason } = body
  return { who: user.who, ...(typeof reason === 'string' && reason !== '' && { reason: reason.slice(0, 500) }) }
}
