import { LONGEST_ASKED_MS } from '../../runtime/index.ts'

/**
 * `Retry-After` as a delay: whole seconds or a date, 24 hours at most. A date that has passed and nonsense count as not
 * having asked.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d{1,20}$/.test(text)) return clamp(Number(text) * 1_000)
  if (!HTTP_DATE.test(text)) return undefined
  const ms = Date.parse(text) - now.getTime()
  return Number.isNaN(ms) ? undefined : clamp(ms)
}

const HTTP_DATE = /^[A-Za-z]{3,9},? .{10,40}$/

function clamp(ms: number): number | undefined {
  return ms <= 0 ? undefined : Math.min(ms, LONGEST_ASKED_MS)
}
