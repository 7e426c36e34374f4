import type { Parameter, Queryable } from '../queryable.ts'

/**
 * How one client library's session becomes a Queryable. Recognised by shape, never by import, so that no library has
 * to be installed and two copies of one do not matter.
 */
export interface Adapter {
  /** As listed to somebody who passed something else. */
  readonly library: string
  /** See Queryable. */
  readonly sendsUntyped?: boolean
  accepts(source: object): boolean
  /**
   * Whether a statement through `source` certainly commits by itself. False where the library does not tell, such as for
   * a client that is busy.
   */
  isOutside(source: object): boolean
  /** The session that is inside a transaction, as a refusal names it. */
  readonly inside: string
  toQuery(source: object): Queryable['query']
  /** What stays the same across the transactions of one pool or client. */
  identityKey(source: object): object
}

/** Reads a property without knowing the type of its owner. */
export function property(owner: unknown, name: string): unknown {
  if ((typeof owner !== 'object' && typeof owner !== 'function') || owner === null) return undefined
  return Reflect.get(owner, name)
}

export function hasMethods(source: object, ...names: string[]): boolean {
  return names.every((name) => typeof property(source, name) === 'function')
}

/** Numbers travel as text: libraries that infer a type would send 1 as int4 and 1.5 as float8. */
export function numbersAsText(values: readonly Parameter[] = []): (string | boolean | null)[] {
  return values.map((value) => (typeof value === 'number' ? String(value) : value))
}

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
