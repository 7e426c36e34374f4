/** What is wrong with configuration data, in words that name the setting and what it expects. */
import { closest } from '../events/index.ts'
import { maskSecrets } from '../runtime/index.ts'
import type { Table } from './config-file.ts'
import type { Found } from './config-mistake.ts'
import { configSchema, keysOf } from './config-schema.ts'
import { findSetting } from './config-settings.ts'

export function findMistakes(data: Table): Found[] {
  const { error } = configSchema.safeParse(data)
  const found = (error?.issues ?? []).flatMap((issue): Found[] => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(issue.path, key))
    const value = issue.path.reduce<unknown>((table, key) => (table as Record<PropertyKey, unknown>)[key], data)
    return [{ path: issue.path, at: 'value', message: unfit(issue.path.join('.'), value) }]
  })
  // A value may break two rules, and what it must be is said once.
  return [...new Map(found.map((one) => [JSON.stringify(one.path.map(String)), one])).values()]
}

function unknownKey(parent: readonly PropertyKey[], key: string): Found {
  const known = keysOf(parent) ?? []
  const near = closest(key, known)
  const hint = near === undefined ? `Known here: ${known.join(', ')}.` : `Did you mean "${near}"?`
  return { path: [...parent, key], at: 'key', message: `is not a setting. ${hint}` }
}

function unfit(name: string, value: unknown): string {
  const setting = findSetting(name)
  if (setting === undefined) return `must be a table, not ${show(value)}.`
  // The text may hold a password, in the right place or in the wrong one.
  const isSecret = name.endsWith('database')
  const words = [...setting.expects.matchAll(/"([\w]+)"/g)].map(([, word = '']) => word)
  const near = typeof value === 'string' && !isSecret ? closest(value, words) : undefined
  return `${setting.expects}${isSecret ? '' : `, not ${show(value)}`}.${near === undefined ? '' : ` Did you mean "${near}"?`}`
}

function show(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(maskSecrets(value.length > 40 ? `${value.slice(0, 40)}…` : value))
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? 'a list' : value instanceof Date ? 'a date' : 'a table'
}
