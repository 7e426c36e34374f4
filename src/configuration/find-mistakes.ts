/** What is wrong with data, by its schema, in words that name the setting, what it expects and what was probably meant. */
import type { z } from 'zod'
import { closest, ExactNumber } from '../events/index.ts'
import { maskSecrets } from '../runtime/index.ts'
import { choicesOf, expectationOf, keysOf, keyTypeOf, schemaAt } from './expectations.ts'
import { type Found, type Path, pathKey } from './mistake.ts'
import { isSensitive } from './sensitive.ts'

export interface Checked {
  /** What the schema makes of the data; undefined when something was found. */
  readonly value: unknown
  readonly found: readonly Found[]
}

export interface CheckOptions {
  /** Where the data stands in the file. */
  readonly above?: Path
  /** Keys that somebody else has looked at, for suggestions. */
  readonly alsoKnown?: readonly string[]
}

export function findMistakes(schema: z.ZodType, data: unknown, options: CheckOptions = {}): readonly Found[] {
  return checkData(schema, data, options).found
}

export function checkData(
  schema: z.ZodType,
  data: unknown,
  { above = [], alsoKnown = [] }: CheckOptions = {},
): Checked {
  const result = schema.safeParse(data)
  const found = (result.error?.issues ?? []).flatMap((issue): Found[] => {
    const path = [...above, ...issue.path]
    const here = schemaAt(schema, issue.path)
    if (issue.code === 'unrecognized_keys') {
      const known = [...(issue.path.length === 0 ? alsoKnown : []), ...(keysOf(here) ?? [])]
      return issue.keys.map((key) => unknownKey(path, key, known))
    }
    if (issue.code === 'invalid_key') {
      const keyType = keyTypeOf(schemaAt(schema, issue.path.slice(0, -1)))
      return [{ path, at: 'key', message: `${words({ schema: keyType, message: issue.message })}.` }]
    }
    const value = valueAt(data, issue.path)
    const expected = { schema: here, message: issue.message }
    if (value === undefined && issue.code === 'invalid_type') return [missing(path, expected)]
    return [{ path, at: 'value', message: unfit(path, value, expected) }]
  })
  // A value may break two rules, and what it must be is said once.
  const once = new Map(
    [...(holdsLostKey(data) ? lostKeys(schema, data, above) : []), ...found].map((one) => [pathKey(one.path), one]),
  )
  return { value: once.size === 0 ? result.data : undefined, found: [...once.values()] }
}

interface Expected {
  readonly schema: z.ZodType | undefined
  readonly message: string
}

function unknownKey(parent: Path, key: string, known: readonly string[]): Found {
  const near = closest(key, known)
  const hint =
    near !== undefined ? ` Did you mean "${near}"?` : known.length > 0 ? ` Known here: ${known.join(', ')}.` : ''
  return { path: [...parent, key], at: 'key', message: `is not a setting.${hint}` }
}

function missing(path: Path, expected: Expected): Found {
  return { path, at: 'key', message: `is missing. It ${words(expected)}.` }
}

function unfit(path: Path, value: unknown, expected: Expected): string {
  const isHidden = isSensitive(path)
  const near = typeof value === 'string' && !isHidden ? closest(value, choicesOf(expected.schema)) : undefined
  const text = words(expected)
  // A sentence of the schema's own is left as it is.
  if (/[.!?]$/.test(text)) return text
  const got = isHidden || !text.startsWith('must') ? '' : `, not ${show(value)}`
  return `${text}${got}.${near === undefined ? '' : ` Did you mean "${near}"?`}`
}

/** zod's own messages begin with "Invalid" or name sizes; those that somebody wrote for people go first. */
function words({ schema, message }: Expected): string {
  const isOwn = !/^(Invalid|Too (big|small)|Unrecognized)/.test(message)
  return isOwn ? message : (expectationOf(schema) ?? 'has a value that does not fit here')
}

/** zod leaves out a key named __proto__ where any name may stand, without a word. */
function lostKeys(schema: z.ZodType, data: unknown, above: Path, path: Path = []): Found[] {
  if (typeof data !== 'object' || data === null) return []
  return Object.keys(data).flatMap((key) => {
    const isLost = key === '__proto__' && schemaAt(schema, path)?.def.type === 'record'
    const here: Found[] = isLost
      ? [{ path: [...above, ...path, key], at: 'key', message: 'is not a name to use here.' }]
      : []
    return [...here, ...lostKeys(schema, (data as Record<string, unknown>)[key], above, [...path, key])]
  })
}

function holdsLostKey(data: unknown): boolean {
  if (typeof data !== 'object' || data === null) return false
  return Object.hasOwn(data, '__proto__') || Object.values(data).some(holdsLostKey)
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], data)
}

function show(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(maskSecrets(value.length > 40 ? `${value.slice(0, 40)}…` : value))
  if (typeof value === 'object' && value !== null && !(value instanceof ExactNumber)) {
    return Array.isArray(value) ? (value.length === 0 ? 'an empty list' : 'a list') : 'a table'
  }
  return typeof value === 'function' ? 'a function' : String(value)
}
