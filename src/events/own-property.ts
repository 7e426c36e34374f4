/**
 * Sets an own property whatever its name. Plain assignment to `__proto__` would change the prototype of the object
 * instead, so that one key is defined; the others are assigned because it is several times faster.
 */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    target[key] = value
  }
}
