/** Reads a time in the forms that events carry it in, also where a `Date` ends: infinity, BC, the year 294276. */
import { Refusal } from './template-error.ts'
import { kindOfValue } from './text.ts'

export type Time =
  | { readonly kind: 'infinity'; readonly text: 'infinity' | '-infinity' }
  /** A day of the calendar: the same day in every zone. */
  | { readonly kind: 'day'; readonly at: Date; readonly yearsOff: number }
  | { readonly kind: 'moment'; readonly at: Date; readonly yearsOff: number }

/**
 * ISO 8601 as Postgres and JSON write it. Without an offset it is UTC. `yearsOff` is what to add to the year of `at`:
 * the calendar repeats every 400 years, so a year at or beyond the ends of `Date` is moved by a multiple of that, which
 * leaves room for zones.
 */
export function readTime(value: unknown): Time {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw notATime(value)
    const yearsOff = yearsBeyond(value.getUTCFullYear())
    return { kind: 'moment', at: new Date(value.getTime() - yearsOff * MS_PER_YEAR), yearsOff }
  }
  if (typeof value !== 'string') throw notATime(value)
  const text = value.trim()
  if (text === 'infinity' || text === '-infinity') return { kind: 'infinity', text }
  const parts = TIME.exec(text)?.groups
  if (parts === undefined) throw notATime(value)
  const written = Number(parts.year)
  const year = parts.bc === undefined ? written : 1 - written
  const yearsOff = yearsBeyond(year)
  const at = toDate(year - yearsOff, parts)
  if (at === undefined) throw notATime(value)
  return { kind: parts.hour === undefined ? 'day' : 'moment', at, yearsOff }
}

/** Undefined for a day or an hour that does not exist, such as 30 February. */
function toDate(year: number, parts: Partial<Record<string, string>>): Date | undefined {
  const [month, day] = [Number(parts.month), Number(parts.day)]
  const [hour, minute, second] = [Number(parts.hour ?? 0), Number(parts.minute ?? 0), Number(parts.second ?? 0)]
  const milliseconds = Number((parts.fraction ?? '').padEnd(3, '0').slice(0, 3))
  const at = new Date(0)
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  at.setUTCFullYear(year, month - 1, day)
  if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return undefined
  if (hour > 23 || minute > 59 || second > 59) return undefined
  at.setUTCHours(hour, minute, second, milliseconds)
  const moved = new Date(at.getTime() - offsetMs(parts))
  return Number.isNaN(moved.getTime()) ? undefined : moved
}

function offsetMs({ sign, offsetHour = '0', offsetMinute = '0', offsetSecond = '0' }: Partial<Record<string, string>>) {
  const seconds = Number(offsetHour) * 3_600 + Number(offsetMinute) * 60 + Number(offsetSecond)
  return (sign === '-' ? -seconds : seconds) * 1_000
}

function notATime(value: unknown): Refusal {
  const given = typeof value === 'string' ? 'text that is none' : kindOfValue(value)
  return new Refusal(`filter "date" takes a time, and was given ${given}`, 'A time looks like 2026-03-01T12:00:00Z.')
}

function yearsBeyond(year: number): number {
  const beyond = Math.max(0, Math.abs(year) - LAST_YEAR)
  return Math.sign(year) * Math.ceil(beyond / 400) * 400
}

/** A `Date` ends in 275760, and begins 271822 BC. */
const LAST_YEAR = 271_000
/** On average over the 400 years after which the calendar repeats. */
const MS_PER_YEAR = (146_097 / 400) * 86_400_000
const DAY = String.raw`(?<year>[+-]?\d{4,6})-(?<month>\d\d)-(?<day>\d\d)`
const CLOCK = String.raw`(?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?)?`
const OFFSET = String.raw`(?:Z|(?<sign>[+-])(?<offsetHour>\d\d)(?::?(?<offsetMinute>\d\d)(?::(?<offsetSecond>\d\d))?)?)`
const TIME = new RegExp(`^${DAY}(?:[T ]${CLOCK}${OFFSET}?)?(?<bc> BC)?$`)
