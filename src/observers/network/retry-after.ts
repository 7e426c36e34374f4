/**
 * `Retry-After` as a delay: whole seconds or a date. What a receiver asks for is honoured up to an hour, as nobody's
 * delivery should sleep for ten years; a date that has passed and nonsense count as not having asked.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d{1,20}$/.test(text)) return clamp(Number(text) * 1_000)
  if (!HTTP_DATE.test(text)) return undefined
  const ms = Date.parse(text) - now.getTime()
  return Number.isNaN(ms) ? undefined : clamp(ms)
}

const LONGEST_MS = 3_600_000
const HTTP_DATE = /^[A-Za-z]{3,9},? .{10,40}$/

function clamp(ms: number): number | undefined {
  return ms <= 0 ? undefined : Math.min(ms, LONGEST_MS)
}
