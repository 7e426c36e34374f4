import { spend } from './budget.ts'

/**
 * Points in time are Dates, so milliseconds are the finest there is. What lies beyond a Date, Postgres' infinity
 * included, becomes the first or the last Date, as it does in the log.
 */
export function parseTimestamp(text: string): Date | undefined {
  if (text === 'infinity') return new Date(LAST_MS)
  if (text === '-infinity') return new Date(-LAST_MS)
  const match = text.length <= LONGEST ? TIMESTAMP.exec(text) : null
  if (match === null) return undefined
  const [, year = '', month, day, hour = 0, minute = 0, second = 0, fraction = '', zone = '', era] = match
  // Date.UTC takes a year below 100 for one of the last century.
  const date = new Date(0)
  date.setUTCFullYear(era === undefined ? Number(year) : 1 - Number(year), Number(month) - 1, Number(day))
  if (date.getUTCMonth() !== Number(month) - 1 && !Number.isNaN(date.getTime())) return undefined
  if (Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return undefined
  if (Number.isNaN(date.getTime())) return new Date(era === undefined ? LAST_MS : -LAST_MS)
  const inDay = (Number(hour) * 60 + Number(minute)) * 60_000 + Number(second) * 1_000
  return clampTime(date.getTime() + inDay + Number(fraction.slice(0, 3).padEnd(3, '0')) - zoneOffsetMs(zone))
}

/** A Date, whatever the sum: the first or the last one beyond the end of time. */
export function clampTime(ms: number): Date {
  return new Date(Math.min(LAST_MS, Math.max(-LAST_MS, ms)))
}

/** A length of time. */
export class Span {
  readonly ms: number

  constructor(ms: number) {
    this.ms = ms
  }

  /** In seconds, as CEL writes it: `5400s`. */
  toString(): string {
    return `${this.ms / 1_000}s`
  }
}

/** `1h30m`, `-1.5h`, `90s`, `7d`: numbers with units, one after another. */
export function parseSpan(text: string): Span | undefined {
  const sign = text.startsWith('-') ? -1 : 1
  const rest = text.startsWith('-') || text.startsWith('+') ? text.slice(1) : text
  if (rest === '' || rest.length > LONGEST) return undefined
  let ms = 0
  let at = 0
  for (const match of rest.matchAll(UNIT)) {
    if (match.index !== at) return undefined
    ms += Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
    at += match[0].length
  }
  return at === rest.length ? new Span(sign * ms) : undefined
}

export const TIMESTAMP_PARTS = {
  getFullYear: (date: Date) => date.getUTCFullYear(),
  getMonth: (date: Date) => date.getUTCMonth(),
  getDate: (date: Date) => date.getUTCDate(),
  getDayOfMonth: (date: Date) => date.getUTCDate() - 1,
  getDayOfWeek: (date: Date) => date.getUTCDay(),
  getDayOfYear: (date: Date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS),
  getHours: (date: Date) => date.getUTCHours(),
  getMinutes: (date: Date) => date.getUTCMinutes(),
  getSeconds: (date: Date) => date.getUTCSeconds(),
  getMilliseconds: (date: Date) => date.getUTCMilliseconds(),
} as const

/** The Date whose UTC parts are what a clock in that zone shows. Undefined when there is no such zone. */
export function inZone(date: Date, zone: string): Date | undefined {
  spend(READING_STEPS)
  const clock = clockOf(zone)
  if (clock === undefined || Number.isNaN(date.getTime())) return undefined
  const parts: Record<string, number> = {}
  for (const { type, value } of clock.formatToParts(date)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second, date.getUTCMilliseconds()))
}

/** Steps of the budget: reading a clock takes about 10 µs, making one or refusing its zone about 150 µs. */
const READING_STEPS = 400
const MAKING_STEPS = 7_500
const LONGEST_ZONE = 60

/** Making one takes long, and a condition asks for the same zone every time. */
const clocks = new Map<string, Intl.DateTimeFormat>()

function clockOf(zone: string): Intl.DateTimeFormat | undefined {
  const known = clocks.get(zone)
  if (known !== undefined) return known
  // The zone may come with the event: a long one is gone through many times before it is refused.
  if (zone.length > LONGEST_ZONE) return undefined
  spend(MAKING_STEPS)
  try {
    const part = 'numeric'
    const clock = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: part,
      month: part,
      day: part,
      hour: part,
      minute: part,
      second: part,
    })
    if (clocks.size >= 50) clocks.clear()
    clocks.set(zone, clock)
    return clock
  } catch {
    return undefined
  }
}

/** `Z`, `+02`, `+0200`, `+02:00`. No zone is UTC: Postgres writes none for `timestamp`, and the machine's is chance. */
function zoneOffsetMs(zone: string): number {
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? []
  if (sign === undefined) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}

const TIMESTAMP =
  /^(\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?( BC)?$/
const UNIT = /(\d+(?:\.\d+)?|\.\d+)(ms|us|ns|s|m|h|d)/g
const DAY_MS = 86_400_000
const UNIT_MS = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }
const LAST_MS = 8.64e15
const LONGEST = 60
