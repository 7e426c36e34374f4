/** Times as text: `date('DD.MM.YYYY HH:mm', 'Europe/Berlin')`. */
import { closest } from '../../events/index.ts'
import type { Filter } from './filter.ts'
import { Refusal } from './template-error.ts'
import { kindOfValue } from './text.ts'
import { readTime } from './time.ts'

export const date: Filter = {
  name: 'date',
  parameters: ['format', 'zone'],
  required: 0,
  check: ([format, zone]) => {
    if (format !== undefined) readFormat(format)
    if (zone !== undefined) clockOf(zone)
  },
  apply: (value, [format = 'YYYY-MM-DD', zone = 'UTC']) => {
    if (value === null || value === undefined) return value
    const tokens = readFormat(format)
    const clock = clockOf(zone)
    const time = readTime(value)
    if (time.kind === 'infinity') return time.text
    const shown = time.kind === 'day' ? utcClock(time.at) : clock(time.at)
    return write(tokens, { ...shown, year: shown.year + time.yearsOff })
  },
}

/** What a clock on the wall of some place shows. */
interface Shown {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly weekday: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
  /** Minutes ahead of UTC. */
  readonly offset: number
}

function write(tokens: readonly string[], shown: Shown): string {
  let text = ''
  let namesYear = false
  for (const token of tokens) {
    const writer = TOKENS.get(token)
    text += writer === undefined ? token.replace(/^\[(.*)\]$/s, '$1') : writer(shown)
    namesYear ||= token.startsWith('YY')
  }
  // As Postgres does: the year before 1 is 1 BC, told at the end.
  return namesYear && shown.year < 1 ? `${text} BC` : text
}

const TOKENS: ReadonlyMap<string, (shown: Shown) => string> = new Map([
  ['YYYY', ({ year }) => padded(year < 1 ? 1 - year : year, 4)],
  ['YY', ({ year }) => padded((year < 1 ? 1 - year : year) % 100, 2)],
  ['MMMM', ({ month }) => MONTHS[month - 1]!],
  ['MMM', ({ month }) => MONTHS[month - 1]!.slice(0, 3)],
  ['MM', ({ month }) => padded(month, 2)],
  ['M', ({ month }) => String(month)],
  ['DD', ({ day }) => padded(day, 2)],
  ['D', ({ day }) => String(day)],
  ['dddd', ({ weekday }) => WEEKDAYS[weekday]!],
  ['ddd', ({ weekday }) => WEEKDAYS[weekday]!.slice(0, 3)],
  ['HH', ({ hour }) => padded(hour, 2)],
  ['H', ({ hour }) => String(hour)],
  ['hh', ({ hour }) => padded(hour % 12 || 12, 2)],
  ['h', ({ hour }) => String(hour % 12 || 12)],
  ['mm', ({ minute }) => padded(minute, 2)],
  ['m', ({ minute }) => String(minute)],
  ['ss', ({ second }) => padded(second, 2)],
  ['s', ({ second }) => String(second)],
  ['SSS', ({ millisecond }) => padded(millisecond, 3)],
  ['A', ({ hour }) => (hour < 12 ? 'AM' : 'PM')],
  ['a', ({ hour }) => (hour < 12 ? 'am' : 'pm')],
  ['Z', ({ offset }) => offsetText(offset)],
])

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November'],
  'December',
]
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

function padded(number: number, digits: number): string {
  return String(number).padStart(digits, '0')
}

function offsetText(minutes: number): string {
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${padded(Math.floor(size / 60), 2)}:${padded(size % 60, 2)}`
}

/** Cuts a format into tokens and other text. A letter that means nothing is refused: `yyyy` would print itself. */
function readFormat(format: unknown): readonly string[] {
  if (typeof format !== 'string') {
    throw new Refusal(`the format of a date is ${kindOfValue(format)}`, "Give text such as 'YYYY-MM-DD'.")
  }
  const known = formats.get(format)
  if (known !== undefined) return known
  if (format.length > 100) throw new Refusal('the format of a date is longer than 100 characters', 'Shorten it.')
  const tokens = format.match(FORMAT_PARTS) ?? []
  for (const token of tokens) {
    if (!/^[A-Za-z]/.test(token) || token === 'T' || TOKENS.has(token)) continue
    const advice = `There are ${[...TOKENS.keys()].join(' ')}; put other words into [brackets].`
    throw new Refusal('the format of a date has letters that mean nothing', advice, meantBy(token))
  }
  return remember(formats, format, tokens)
}

function meantBy(token: string): string | undefined {
  return [...TOKENS.keys()].find((known) => known.toLowerCase() === token.toLowerCase())
}

function clockOf(zone: unknown): (at: Date) => Shown {
  if (zone === 'UTC') return utcClock
  if (typeof zone !== 'string') throw new Refusal(`the time zone is ${kindOfValue(zone)}`, "Give 'Europe/Berlin'.")
  return clocks.get(zone) ?? remember(clocks, zone, zoneClock(zone))
}

function utcClock(at: Date): Shown {
  return {
    year: at.getUTCFullYear(),
    month: at.getUTCMonth() + 1,
    day: at.getUTCDate(),
    weekday: at.getUTCDay(),
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
    millisecond: at.getUTCMilliseconds(),
    offset: 0,
  }
}

/** Intl knows the zones; what it shows is read back as if it were UTC, which gives the offset and the weekday. */
function zoneClock(zone: string): (at: Date) => Shown {
  const formatter = zoneFormatter(zone)
  return (at) => {
    const parts = new Map(formatter.formatToParts(at).map(({ type, value }) => [type, value]))
    const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type))
    const year = parts.get('era') === 'BC' ? 1 - part('year') : part('year')
    const wall = new Date(0)
    wall.setUTCFullYear(year, part('month') - 1, part('day'))
    wall.setUTCHours(part('hour'), part('minute'), part('second'), at.getUTCMilliseconds())
    return { ...utcClock(wall), offset: Math.round((wall.getTime() - at.getTime()) / 60_000) }
  }
}

function zoneFormatter(timeZone: string): Intl.DateTimeFormat {
  const number = 'numeric'
  const fields = { year: number, month: number, day: number, hour: number, minute: number, second: number } as const
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      era: 'short',
      ...fields,
    })
  } catch {
    // The zone may come from the event, so it is not repeated.
    const near = closest(timeZone, Intl.supportedValuesOf('timeZone'))
    throw new Refusal('the time zone is not known', "Give an IANA name, such as 'Europe/Berlin'.", near)
  }
}

/** Formats and zones may come from events, so what is kept of them is bounded. */
function remember<Value>(kept: Map<string, Value>, key: string, value: Value): Value {
  if (kept.size >= 100) kept.clear()
  kept.set(key, value)
  return value
}

const formats = new Map<string, readonly string[]>()
const clocks = new Map<string, (at: Date) => Shown>()
/** Bracketed words, runs of one letter, and whatever else. */
const FORMAT_PARTS = /\[[^\]]*\]|([A-Za-z])\1*|[^A-Za-z[]+|\[/g
