import { build, spend } from './budget.ts'
import { LONGEST_LIST, LONGEST_TEXT } from './limits.ts'
import { type Numeric, parseNumber, textOf, truncate } from './numbers.ts'
import type { Kind } from './shape.ts'
import { clampTime, inZone, parseSpan, parseTimestamp, type Span, TIMESTAMP_PARTS } from './timestamps.ts'
import { type Fields, keysOf } from './values.ts'

/** A function by the kinds it takes. The first operand of a method is what it is called on. */
export interface FunctionRule {
  readonly name: string
  readonly style: 'function' | 'method' | 'both'
  readonly takes: readonly Kind[]
  readonly gives: Kind
  /** What undefined as a result means. */
  readonly problem?: string
  call(...operands: never[]): unknown
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])
const OUTSIDE = 'the place lies outside of the text'
const UNJOINABLE = `the items are not all text, or more than ${LONGEST_TEXT} characters together`

/** The functions of CEL that have a use for events. All are pure and there is no "now": an event is judged alike. */
export const FUNCTIONS: readonly FunctionRule[] = [
  both('size', ['text'], 'number', (text: string) => lengthOf(text)),
  both('size', ['list'], 'number', (list: readonly unknown[]) => list.length),
  both('size', ['map'], 'number', (map: Fields) => keysOf(map).length),

  method('startsWith', ['text', 'text'], 'bool', (text: string, start: string) => text.startsWith(scanned(start))),
  method('endsWith', ['text', 'text'], 'bool', (text: string, end: string) => text.endsWith(scanned(end))),
  method('contains', ['text', 'text'], 'bool', (text: string, part: string) => scanned(text).includes(part)),
  method('lowerAscii', ['text'], 'text', (text: string) =>
    rebuilt(text).replace(/[A-Z]+/g, (word) => word.toLowerCase()),
  ),
  method('upperAscii', ['text'], 'text', (text: string) =>
    rebuilt(text).replace(/[a-z]+/g, (word) => word.toUpperCase()),
  ),
  method('trim', ['text'], 'text', (text: string) => rebuilt(text).trim()),
  method('indexOf', ['text', 'text'], 'number', indexOf),
  method('substring', ['text', 'number'], 'text', substring, OUTSIDE),
  method('substring', ['text', 'number', 'number'], 'text', substring, OUTSIDE),
  method('split', ['text', 'text'], 'list', split, `it would give more than ${LONGEST_LIST} items`),
  method('join', ['list'], 'text', (list: readonly unknown[]) => join(list, ''), UNJOINABLE),
  method('join', ['list', 'text'], 'text', join, UNJOINABLE),

  plain('string', ['text'], 'text', (text: string) => text),
  plain('string', ['bool'], 'text', String),
  plain('string', ['number'], 'text', textOf),
  plain('string', ['timestamp'], 'text', (time: Date) =>
    Number.isNaN(time.getTime()) ? undefined : time.toISOString(),
  ),
  plain('string', ['duration'], 'text', (span: Span) => span.toString()),
  plain('int', ['number'], 'number', truncate, 'the number is too large'),
  plain('int', ['text'], 'number', toInteger, 'the text is not a whole number'),
  plain('int', ['timestamp'], 'number', (time: Date) => Math.floor(time.getTime() / 1_000)),
  plain('double', ['number'], 'number', (value: Numeric) => value),
  plain('double', ['text'], 'number', toNumber, 'the text is not a number'),
  plain('bool', ['bool'], 'bool', (value: boolean) => value),
  plain('bool', ['text'], 'bool', (text: string) => BOOLEANS.get(scanned(text)), 'the text is neither true nor false'),

  plain('timestamp', ['timestamp'], 'timestamp', (time: Date) => time),
  plain('timestamp', ['text'], 'timestamp', parseTimestamp, 'the text is not a timestamp such as 2026-03-01T12:00:00Z'),
  plain('timestamp', ['number'], 'timestamp', (seconds: Numeric) => clampTime(Number(textOf(seconds)) * 1_000)),
  plain('duration', ['duration'], 'duration', (span: Span) => span),
  plain('duration', ['text'], 'duration', parseSpan, 'the text is not a duration such as 90s, 1h30m or 7d'),
  ...partsOfTimestamps(),
  method('getHours', ['duration'], 'number', (span: Span) => Math.trunc(span.ms / 3_600_000)),
  method('getMinutes', ['duration'], 'number', (span: Span) => Math.trunc(span.ms / 60_000)),
  method('getSeconds', ['duration'], 'number', (span: Span) => Math.trunc(span.ms / 1_000)),
  method('getMilliseconds', ['duration'], 'number', (span: Span) => Math.trunc(span.ms)),
]

function plain(name: string, takes: Kind[], gives: Kind, call: FunctionRule['call'], problem?: string): FunctionRule {
  return { name, style: 'function', takes, gives, call, ...(problem === undefined ? {} : { problem }) }
}

function method(name: string, takes: Kind[], gives: Kind, call: FunctionRule['call'], problem?: string): FunctionRule {
  return { ...plain(name, takes, gives, call, problem), style: 'method' }
}

function both(name: string, takes: Kind[], gives: Kind, call: FunctionRule['call']): FunctionRule {
  return { ...plain(name, takes, gives, call), style: 'both' }
}

/** `at.getHours()` in UTC, `at.getHours('Europe/Paris')` elsewhere. */
function partsOfTimestamps(): FunctionRule[] {
  return Object.entries(TIMESTAMP_PARTS).flatMap(([name, read]) => [
    method(name, ['timestamp'], 'number', read),
    method(
      name,
      ['timestamp', 'text'],
      'number',
      (time: Date, zone: string) => {
        const local = inZone(time, zone)
        return local && read(local)
      },
      'there is no such time zone',
    ),
  ])
}

/** Text is gone through at a cost, or ten thousand items that each search a long text would take minutes. */
function scanned(text: string): string {
  spend(1 + (text.length >> 4))
  return text
}

/** A copy may come of it. Changing the case of every other letter takes a call for each. */
function rebuilt(text: string): string {
  build(text.length)
  spend(text.length >> 1)
  return text
}

/** Characters as people count them: an emoji is one, although it takes two units. */
function lengthOf(text: string): number {
  if (!SURROGATE.test(scanned(text))) return text.length
  spend(text.length >> 1)
  let length = 0
  for (const _character of text) length++
  return length
}

const SURROGATE = /[\ud800-\udfff]/

function indexOf(text: string, part: string): number {
  const at = scanned(text).indexOf(part)
  return at < 0 ? at : lengthOf(text.slice(0, at))
}

function substring(text: string, from: Numeric, to?: Numeric): string | undefined {
  // Each character becomes an item, which takes the room of several.
  build(text.length * 4)
  const characters = [...text]
  const [start, end] = [Number(textOf(from)), to === undefined ? characters.length : Number(textOf(to))]
  const isInside = Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end
  return isInside && end <= characters.length ? characters.slice(start, end).join('') : undefined
}

function split(text: string, separator: string): string[] | undefined {
  build(text.length + LONGEST_LIST)
  const pieces = text.split(separator, LONGEST_LIST + 1)
  return pieces.length > LONGEST_LIST ? undefined : pieces
}

function join(list: readonly unknown[], separator: string): string | undefined {
  spend(list.length)
  let length = separator.length * list.length
  for (const item of list) {
    if (typeof item !== 'string') return undefined
    length += item.length
  }
  if (length > LONGEST_TEXT) return undefined
  build(length)
  return list.join(separator)
}

function toInteger(text: string): Numeric | undefined {
  return text.length <= LONGEST_NUMBER && /^-?\d+$/.test(text) ? parseNumber(text) : undefined
}

function toNumber(text: string): Numeric | undefined {
  const isNumber = text.length <= LONGEST_NUMBER && /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?$/.test(text)
  return isNumber ? parseNumber(text) : undefined
}

const LONGEST_NUMBER = 1_000
