import { ExactNumber } from '../../events/index.ts'

/** What counts as true in `{% if %}`, as in Jinja: all but false, null, absent, zero, and empty text, lists and objects. */
export function isTrue(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Boolean(value)
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof ExactNumber) return /[1-9]/.test(value.text.split(/e/i, 1)[0] ?? '')
  const prototype = Object.getPrototypeOf(value)
  const isPlain = prototype === null || prototype === Object.prototype
  return !isPlain || Object.keys(value).length > 0
}
