/**
 * What has just begun. Most calls end before the event loop turns once: only those that do not are worth a timer and a
 * signal, which cost more than all the rest of a call.
 */
export interface Nursery {
  /** Called once the event loop has turned; whether it is still of interest, the callback knows. */
  add(grownUp: () => void): void
}

export function createNursery(): Nursery {
  let young: (() => void)[] = []
  return {
    add(grownUp) {
      if (young.length === 0) setImmediate(turn)
      young.push(grownUp)
    },
  }

  function turn(): void {
    const all = young
    young = []
    for (const grownUp of all) grownUp()
  }
}
