/**
 * Whether JSON.stringify would write the value as it is: plain objects, arrays and valid dates around text, finite
 * numbers, booleans and null, not too deep and not surely too large. It is the whole extra cost of an ordinary payload,
 * so it neither allocates nor keeps a path; a `false` only sends the value to the careful writer.
 */
export function isOrdinary(value: unknown, depthLeft: number, look: Look): boolean {
  switch (typeof value) {
    case 'string':
      look.charactersLeft -= value.length
      return look.charactersLeft >= 0
    case 'number':
      look.charactersLeft--
      return value === 0 ? Object.is(value, 0) : Number.isFinite(value)
    case 'boolean':
      look.charactersLeft -= 4
      return true
    case 'object':
      if (value !== null)
        return depthLeft > 0 && isOrdinaryObject(value as Record<string, unknown>, depthLeft - 1, look)
      look.charactersLeft -= 4
      return true
    default:
      return false
  }
}

function isOrdinaryObject(value: Record<string, unknown>, depthLeft: number, look: Look): boolean {
  look.charactersLeft -= 2
  if (look.charactersLeft < 0) return false
  if (Array.isArray(value)) {
    if (value.toJSON !== undefined) return false
    for (let at = 0; at < value.length; at++) if (!isOrdinary(value[at], depthLeft, look)) return false
    return true
  }
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return isOrdinaryDate(value)
  // Inherited keys are looked at too, which can only send the value to the careful writer. A function under toJSON is
  // not ordinary either, so JSON.stringify meets none.
  for (const key in value) {
    const member = value[key]
    if (member === undefined) continue
    look.charactersLeft -= key.length
    if (!isOrdinary(member, depthLeft, look)) return false
  }
  return true
}

function isOrdinaryDate(value: object): boolean {
  return value instanceof Date && value.toJSON === Date.prototype.toJSON && !Number.isNaN(value.getTime())
}

interface Look {
  /** A lower bound of what is left of the byte limit, so that a huge or self-multiplying value is dropped early. */
  charactersLeft: number
}
