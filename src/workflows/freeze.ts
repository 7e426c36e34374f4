/**
 * Freezes what a state is made of: objects and arrays, as deep as they go. A state is remembered from one input to the
 * next, so `evolve` that changes it in place would change the past; frozen, that is an error at once. What is frozen
 * already was frozen here, so the parts that two states share are looked at once.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value
  Object.freeze(value)
  for (const key of Object.keys(value)) deepFreeze((value as Record<string, unknown>)[key])
  return value
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
