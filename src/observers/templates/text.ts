/** How a value looks as text. There is no "[object Object]" and no "undefined": lists and objects are JSON. */
import { Span } from '../../conditions/index.ts'
import { ExactNumber, stringifyJson } from '../../events/index.ts'
import { Refusal } from './template-error.ts'

/** Null and absent have no text; whether that is an error is up to the field. */
export function toText(value: unknown, maxBytes: number): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
    case 'bigint':
      return String(value)
    case 'number':
      return numberText(value)
    case 'object':
      return value === null ? '' : objectText(value, maxBytes)
    case 'undefined':
      return ''
    default:
      throw new Refusal(`a ${typeof value} cannot be written as text`, 'Name one of its values.')
  }
}

/** Lists and objects as JSON, digit for digit; at most 64 levels. */
export function jsonText(value: unknown, maxBytes: number): string {
  try {
    return stringifyJson(asData(value) ?? null, { maxBytes, name: 'the value' })
  } catch (cause) {
    if (cause instanceof Refusal) throw cause
    throw new Refusal('the value cannot be written as JSON', 'The cause says what is in the way.', undefined, cause)
  }
}

/** Times and durations become text; anything else that is no data is refused, before anything writes it as `{}`. */
export function asData(value: unknown): unknown {
  if (typeof value === 'number') numberText(value)
  if (typeof value === 'function' || typeof value === 'symbol') throw notData()
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof ExactNumber) return value
  if (value instanceof Date) return dateText(value)
  if (value instanceof Span) return String(value)
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) throw notData()
  return value
}

/** What a value is, in a message: its kind and never its content. */
export function kindOfValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return 'a time'
  if (value instanceof Span) return 'a duration'
  if (typeof value === 'number' || typeof value === 'bigint' || value instanceof ExactNumber) return 'a number'
  return KINDS.get(typeof value) ?? 'something else'
}

const KINDS: ReadonlyMap<string, string> = new Map([
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['object', 'an object'],
])

function numberText(value: number): string {
  if (!Number.isFinite(value)) throw new Refusal('the number is not finite', 'Look for a division by zero.')
  return Object.is(value, -0) ? '-0' : String(value)
}

function objectText(value: object, maxBytes: number): string {
  if (value instanceof ExactNumber) return value.text
  if (value instanceof Date) return dateText(value)
  if (value instanceof Span) return String(value)
  return jsonText(value, maxBytes)
}

function dateText(value: Date): string {
  if (Number.isNaN(value.getTime())) throw new Refusal('the time is not valid', 'Look at where it comes from.')
  return value.toISOString()
}

function notData(): Refusal {
  return new Refusal('the value is no data: neither text, number, list nor object', 'Convert it, as in int(…).')
}
