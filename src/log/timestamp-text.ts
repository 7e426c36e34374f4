/**
 * A Date as Postgres reads it. The ISO text of JavaScript has signs and six digits outside of the years 1 to 9999, which
 * Postgres takes for a time zone; it says BC instead, and has no year 0.
 */
export function toTimestampText(time: Date): string {
  if (isTooEarly(time)) return '-infinity'
  const year = time.getUTCFullYear()
  const iso = time.toISOString()
  if (year >= 1 && year <= 9999) return iso
  const rest = iso.slice(-AFTER_YEAR.length)
  return year > 0 ? `${year}${rest}` : `${String(1 - year).padStart(4, '0')}${rest} BC`
}

/** Postgres knows no time before this one; its last lies beyond that of a Date. */
export function isTooEarly(time: Date): boolean {
  return time.getTime() < FIRST_MS
}

const FIRST_MS = Date.UTC(-4713, 10, 24)
const AFTER_YEAR = '-MM-DDTHH:mm:ss.sssZ'
