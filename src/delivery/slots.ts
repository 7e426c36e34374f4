/** How many calls are under way at a time, in all and for one destination. Those who wait get their turn in order. */
export interface Slots {
  /** The destination has as many as it may have: waiting for it would hold everything behind. */
  isFull(destination: string): boolean
  /** True when there is room at once. */
  take(destination: string): true | Promise<void>
  give(destination: string): void
}

export function createSlots(most: number, mostPerDestination: number): Slots {
  const byDestination = new Map<string, number>()
  const waiting: (() => void)[] = []
  let taken = 0

  return {
    isFull: (destination) => destination !== '' && (byDestination.get(destination) ?? 0) >= mostPerDestination,
    take(destination) {
      if (destination !== '') byDestination.set(destination, (byDestination.get(destination) ?? 0) + 1)
      if (taken < most) {
        taken++
        return true
      }
      return new Promise((resolve) => waiting.push(resolve))
    },
    give(destination) {
      if (destination !== '') {
        const left = (byDestination.get(destination) ?? 1) - 1
        if (left === 0) byDestination.delete(destination)
        else byDestination.set(destination, left)
      }
      const next = waiting.shift()
      // The slot passes from hand to hand.
      if (next) next()
      else taken--
    },
  }
}
