/** How many calls are under way at a time, in all and for one destination. Those who wait get their turn in order. */
export interface Slots {
  /**
   * The destination has as many as it may have, or it is one of those that hang and together have half of all: waiting for
   * it would hold everything behind.
   */
  isFull(destination: string): boolean
  /** True when there is room at once. */
  take(destination: string): true | Promise<void>
  give(destination: string): void
  /** A call goes on and on; call what it returns when it has ended. */
  slow(destination: string): () => void
}

export function createSlots(most: number, mostPerDestination: number): Slots {
  const byDestination = createTally()
  const slow = createTally()
  const waiting: (() => void)[] = []
  let taken = 0

  return {
    isFull(destination) {
      if (destination === '') return false
      if (byDestination.count(destination) >= mostPerDestination) return true
      return slow.total() >= most / 2 && slow.count(destination) > 0
    },
    take(destination) {
      byDestination.add(destination)
      if (taken < most) {
        taken++
        return true
      }
      return new Promise((resolve) => waiting.push(resolve))
    },
    give(destination) {
      byDestination.remove(destination)
      const next = waiting.shift()
      // The slot passes from hand to hand.
      if (next) next()
      else taken--
    },
    slow(destination) {
      slow.add(destination)
      return () => slow.remove(destination)
    },
  }
}

/** Counts by destination; what has none is not counted. */
function createTally() {
  const counts = new Map<string, number>()
  let total = 0
  return {
    total: () => total,
    count: (destination: string) => counts.get(destination) ?? 0,
    add(destination: string): void {
      if (destination === '') return
      total++
      counts.set(destination, (counts.get(destination) ?? 0) + 1)
    },
    remove(destination: string): void {
      if (destination === '') return
      total--
      const left = (counts.get(destination) ?? 1) - 1
      if (left === 0) counts.delete(destination)
      else counts.set(destination, left)
    },
  }
}
