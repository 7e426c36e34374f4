import type { AnyEvent } from './event-row.ts'

/**
 * The last events the tailer has read, shared by all readers of the process that are near the head. Bounded by number
 * and by size; a reader that has fallen behind its beginning reads pages from the database instead.
 */
export interface RecentEvents {
  /** It holds every event above this position, up to the frontier. */
  readonly after: bigint
  push(event: AnyEvent, size: number): void
  /** Events above `after`, at most `limit`; undefined when some of them are no longer here. */
  read(after: bigint, limit: number): AnyEvent[] | undefined
  restart(after: bigint): void
}

export function createRecentEvents(start: bigint, { maxEvents = 2_000, maxSize = 16_000_000 } = {}): RecentEvents {
  let events: AnyEvent[] = []
  let sizes: number[] = []
  let first = 0
  let total = 0
  let after = start

  function evict(): void {
    while (events.length - first > maxEvents || (total > maxSize && events.length - first > 1)) {
      after = events[first]!.position
      total -= sizes[first]!
      first++
    }
    // Moving the rest down once in a while keeps push cheap. By then as many have gone as are left, and their memory with
    // them: a bound by number alone would keep thousands of large events that nobody can read any more.
    if (first * 2 > events.length) {
      events = events.slice(first)
      sizes = sizes.slice(first)
      first = 0
    }
  }

  /** Index of the first event above a position. */
  function indexAbove(position: bigint): number {
    let low = first
    let high = events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (events[middle]!.position > position) high = middle
      else low = middle + 1
    }
    return low
  }

  return {
    get after() {
      return after
    },
    push(event, size) {
      events.push(event)
      sizes.push(size)
      total += size
      evict()
    },
    read(from, limit) {
      if (from < after) return undefined
      const start = indexAbove(from)
      return events.slice(start, start + limit)
    },
    restart(at) {
      events = []
      sizes = []
      first = 0
      total = 0
      after = at
    },
  }
}
