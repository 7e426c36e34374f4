/**
 * How much there is in a value, in characters or so: what a function of an expression may have to read. Counts no
 * further than `enough`, and keeps its own stack, so a deep value is as harmless as a large one.
 */
export function weigh(value: unknown, enough = 1_000_000): number {
  const left: unknown[] = [value]
  let weight = 0
  while (left.length > 0 && weight < enough) {
    const next = left.pop()
    weight++
    if (typeof next === 'string') weight += next.length
    else if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) left.push(member)
  }
  return weight
}
