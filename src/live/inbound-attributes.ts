/** Reading the attributes of a CloudEvent that a stranger wrote: every mistake is told, and reading goes on. */
import { checkAggregate, JsonError, parseJson } from '../events/index.ts'

export type Attributes = Readonly<Record<string, unknown>>
export type Tell = (field: string, detail: string) => void

export interface Aggregate {
  readonly type: string
  readonly id: string
}

export function readAggregate(type: string | undefined, id: string | undefined, tell: Tell): Aggregate | undefined {
  if (type === undefined && id === undefined) return undefined
  if (type === undefined) tell('aggregatetype', 'is missing although aggregateid is there')
  else if (id === undefined) tell('aggregateid', 'is missing although aggregatetype is there')
  else {
    attempt('aggregatetype', tell, () => checkAggregate({ type, id: 'any' }))
    attempt('aggregateid', tell, () => checkAggregate({ type: 'any', id }))
    return { type, id }
  }
  return undefined
}

export function readObject(name: string, text: string | undefined, tell: Tell): Record<string, unknown> | undefined {
  if (text === undefined) return undefined
  let value: unknown
  attempt(name, tell, () => {
    value = parseJson(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) tell(name, 'is not an object as JSON text')
  })
  return value as Record<string, unknown> | undefined
}

export function readTime(text: string | undefined, tell: Tell): Date | undefined {
  if (text === undefined) return undefined
  const time = new Date(text)
  if (TIMESTAMP.test(text) && !Number.isNaN(time.getTime())) return time
  tell('time', 'is not a timestamp like 2026-03-01T12:00:00Z')
  return undefined
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/

export function required(name: string, value: string | undefined, tell: Tell): string {
  if (value === undefined || value === '') tell(name, 'is missing or empty')
  return value ?? ''
}

export function readText(attributes: Attributes, name: string, tell: Tell): string | undefined {
  const value = read(attributes, name) ?? undefined
  if (value === undefined || typeof value === 'string') return value
  tell(name, 'is not text')
  return undefined
}

export function read(attributes: Attributes, name: string): unknown {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined
}

export function attempt(field: string, tell: Tell, check: () => void): void {
  try {
    check()
  } catch (error) {
    if (error instanceof JsonError && error.path.startsWith(field)) tell(error.path, error.reason)
    else tell(field, error instanceof Error ? error.message : 'is refused')
  }
}
