/**
 * A fingerprint of configuration. It does not depend on the order of keys, and of a secret it takes the name of the
 * variable only: a value must not be guessable from what is stored. What was compiled is no part of it.
 */
import { hash } from 'node:crypto'
import { ExactNumber } from '../../events/index.ts'

export function hashOf(value: unknown): string {
  return hash('sha256', canonical(value)).slice(0, 32)
}

function canonical(value: unknown): string {
  if (typeof value === 'bigint' || value instanceof ExactNumber) return String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if ('toJSON' in value && typeof value.toJSON === 'function') return canonical(value.toJSON())
  let text = ''
  for (const key of Object.keys(value).sort()) {
    const item = (value as Record<string, unknown>)[key]
    if (item === undefined || COMPILED.has(key)) continue
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonical(item)}`
  }
  return `{${text}}`
}

const COMPILED = new Set(['prepared', 'compiled'])
