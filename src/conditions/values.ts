import { ExactNumber } from '../events/index.ts'
import { spend, spendOnText } from './budget.ts'
import { compareNumbers, isNumeric } from './numbers.ts'
import type { Kind } from './shape.ts'
import { Span } from './timestamps.ts'

/**
 * The values that expressions work on: what JSON can hold, numbers in all three exact forms, timestamps (Date) and
 * durations (Span). Everything else that an object could offer, such as its prototype, is out of reach from here.
 */
export type Fields = Readonly<Record<string, unknown>>

/** Anything with named fields. Lists, numbers and times are values of their own and have none. */
export function isMap(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return !(Array.isArray(value) || value instanceof ExactNumber || value instanceof Date || value instanceof Span)
}

/** At a cost: an object may have as many fields as a payload has room for. */
export function keysOf(fields: Fields): string[] {
  const names = Object.keys(fields)
  spend(names.length)
  return names
}

/** A field of its own, never one that comes from the prototype. Undefined when there is none. */
export function readField(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

/** Undefined for null, for what is absent, and for what no expression can work on, such as a function. */
export function kindOfValue(value: unknown): Kind | undefined {
  switch (typeof value) {
    case 'string':
      return 'text'
    case 'number':
    case 'bigint':
      return 'number'
    case 'boolean':
      return 'bool'
    case 'object':
      return value === null ? undefined : kindOfObject(value)
    default:
      return undefined
  }
}

function kindOfObject(value: object): Kind {
  if (Array.isArray(value)) return 'list'
  if (value instanceof Date) return 'timestamp'
  if (value instanceof Span) return 'duration'
  return value instanceof ExactNumber ? 'number' : 'map'
}

/** Equal as JSON: numbers by value, objects by fields in any order; absent is null. Different kinds are unequal. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' && typeof other === 'string') spendOnText(Math.min(one.length, other.length))
  if (one === other) return true
  if (one === undefined || one === null) return other === undefined || other === null
  if (isNumeric(one)) return isNumeric(other) && compareNumbers(one, other) === 0
  if (typeof one !== 'object' || typeof other !== 'object' || other === null) return false
  if (one instanceof Date) return other instanceof Date && one.getTime() === other.getTime()
  if (one instanceof Span) return other instanceof Span && one.ms === other.ms
  if (Array.isArray(one)) return Array.isArray(other) && isEqualList(one, other)
  return isMap(one) && isMap(other) && isEqualMap(one, other)
}

function isEqualList(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false
  return one.every((item, at) => {
    spend(1)
    return isEqual(item, other[at])
  })
}

function isEqualMap(one: Fields, other: Fields): boolean {
  const names = keysOf(one)
  if (names.length !== keysOf(other).length) return false
  return names.every((name) => {
    spend(2)
    return Object.hasOwn(other, name) && isEqual(one[name], other[name])
  })
}

/**
 * Below zero, zero or above: the order of two values of one kind. Undefined when they have none, which is so for
 * different kinds, for lists and objects, and for a Date that is no time.
 */
export function orderOf(one: unknown, other: unknown): number | undefined {
  if (isNumeric(one) && isNumeric(other)) return compareNumbers(one, other)
  if (typeof one === 'string' && typeof other === 'string') {
    spendOnText(Math.min(one.length, other.length))
    return signOf(one, other)
  }
  if (typeof one === 'boolean' && typeof other === 'boolean') return Number(one) - Number(other)
  if (one instanceof Date && other instanceof Date) {
    const apart = one.getTime() - other.getTime()
    return Number.isNaN(apart) ? undefined : apart
  }
  return one instanceof Span && other instanceof Span ? signOf(one.ms, other.ms) : undefined
}

function signOf<Value extends string | number>(one: Value, other: Value): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}
