import { type Change, type Changes, stringifyJson } from '../events/index.ts'

/** A row as it goes into an event. */
export type Image = Readonly<Record<string, unknown>>

/** Field → old and new value, for the fields whose JSON differs; undefined when none does. */
export function changesBetween(before: Image, after: Image): Changes | undefined {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = fields.filter((field) => textOf(before, field) !== textOf(after, field))
  if (changed.length === 0) return undefined
  // fromEntries defines properties, so a column called __proto__ is one like any other.
  return Object.fromEntries(
    changed.map((field): [string, Change] => [field, { old: fieldOf(before, field), new: fieldOf(after, field) }]),
  )
}

function textOf(image: Image, field: string): string {
  return stringifyJson(fieldOf(image, field), { name: field })
}

function fieldOf(image: Image, field: string): unknown {
  return Object.hasOwn(image, field) ? (image[field] ?? null) : null
}
