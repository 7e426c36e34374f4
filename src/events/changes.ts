import { AftercommitError } from '../errors.ts'
import type { AftercommitEvent, Change } from './event.ts'
import { ExactNumber, sameNumber } from './exact-number.ts'
import { quoted } from './quoted.ts'

/**
 * Questions about what an event changed. An event that carries no `changes` cannot answer them, and "no" would be a
 * wrong answer, so asking it is an error.
 */
export function fieldChanged(event: AftercommitEvent, field: string): boolean {
  return changeOf(event, field) !== undefined
}

/** Whether the field changed and now has this value. */
export function changedTo(event: AftercommitEvent, field: string, value: unknown): boolean {
  const change = changeOf(event, field)
  return change !== undefined && isSame(change.new, value)
}

/** Whether the field changed and had this value before. */
export function changedFrom(event: AftercommitEvent, field: string, value: unknown): boolean {
  const change = changeOf(event, field)
  return change !== undefined && isSame(change.old, value)
}

function changeOf(event: AftercommitEvent, field: string): Change | undefined {
  if (event.changes === null) {
    throw new AftercommitError(
      'BAD_EVENT',
      `Event ${quoted(event.id)} of type ${quoted(event.type)} carries no changes, so it cannot say whether ` +
        `${quoted(field)} changed. Emit it with changes, or capture the table.`,
    )
  }
  return Object.hasOwn(event.changes, field) ? event.changes[field] : undefined
}

/** Equal as JSON: numbers by value in whatever form they are, objects by their keys in any order. */
function isSame(one: unknown, other: unknown): boolean {
  if (isNumeric(one) && isNumeric(other)) return sameNumber(one, other)
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other
  if (isNumeric(one) || isNumeric(other) || Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  return keys.every((key) => Object.hasOwn(other, key) && isSame(Reflect.get(one, key), Reflect.get(other, key)))
}

function isNumeric(value: unknown): value is number | bigint | ExactNumber {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof ExactNumber
}
