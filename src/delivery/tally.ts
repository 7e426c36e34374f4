/** Calls under way, counted by place: a destination, or the name of work that has none. */
export interface Tally {
  total(): number
  count(place: string): number
  entries(): Iterable<[place: string, count: number]>
  add(place: string): void
  remove(place: string): void
}

export function createTally(): Tally {
  const counts = new Map<string, number>()
  let total = 0
  return {
    total: () => total,
    count: (place) => counts.get(place) ?? 0,
    entries: () => counts,
    add(place) {
      total++
      counts.set(place, (counts.get(place) ?? 0) + 1)
    },
    remove(place) {
      total--
      const left = (counts.get(place) ?? 1) - 1
      if (left === 0) counts.delete(place)
      else counts.set(place, left)
    },
  }
}
