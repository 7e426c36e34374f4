/**
 * First attempts at a time, for the whole process and for one place: a destination, or the name of work that has none.
 * First attempts that wait get their slots in order. Outcomes of asking for a slot, failures first:
 *
 *   waits for too long       gets none: waiting on would hold everything behind it
 *   others could do it       gets none: more waits than this process can begin next, and other processes have room
 *   its place has its share  waits for another of its own, so that the rest is for others
 *   all are taken            waits for any
 */
import type { Clock } from '../runtime/index.ts'
import type { LeftLane } from '../subscriptions/index.ts'
import type { SharedPlaces } from './shared-places.ts'
import type { Surplus } from './surplus.ts'
import { createTally } from './tally.ts'

export interface Slots {
  /** It is one of those whose calls go on and on, and which together have half of all. */
  isHanging(place: string): boolean
  /** True when there is room at once; else resolves with whether there was room in time. `lane`: of a row that any process may run. */
  take(place: string, lane?: LeftLane): true | Promise<boolean>
  give(place: string): void
  /** A call goes on and on; call what it returns when it has ended. */
  slow(place: string): () => void
}

/** As long as a call may take before it is slow: an event is held by either, and not for longer. */
const PATIENCE_MS = 1_000
/** From then on what waits is offered to other processes. */
const SURPLUS_MS = 100

interface Waiting {
  readonly place: string
  readonly lane: LeftLane | undefined
  readonly sinceMs: number
  end(hasSlot: boolean): void
}

export function createSlots(clock: Clock, shared: SharedPlaces, share: number, surplus?: Surplus): Slots {
  const { most } = shared
  const slow = createTally()
  /** Those with a slot, and those that wait for any. */
  const counted = createTally()
  const forAny = new Set<Waiting>()
  const forOwn = new Map<string, Set<Waiting>>()
  let isWatched = false
  let isSharing = false

  function wait(line: Set<Waiting>, place: string, lane: LeftLane | undefined): Promise<boolean> {
    if (!isWatched) watch()
    return new Promise((end) => line.add({ place, lane, sinceMs: clock.monotonic(), end }))
  }

  /** One of the place has ended or waits no more: its next one may have any slot. */
  function leave(place: string): void {
    counted.remove(place)
    const line = forOwn.get(place)
    if (line) advance(place, line)
  }

  /** Moves first attempts of a place whose share has room to the line for any slot. */
  function advance(place: string, line: Set<Waiting>): void {
    while (line.size > 0 && !isFull(place)) {
      const next = first(line)!
      line.delete(next)
      counted.add(place)
      forAny.add(next)
    }
    if (line.size === 0) forOwn.delete(place)
  }

  /** One timer for all: whoever waits mostly does not wait for long. */
  function watch(): void {
    isWatched = true
    clock.setTimer(surplus?.hasOthers ? SURPLUS_MS : PATIENCE_MS / 4, () => {
      isWatched = false
      const sinceMs = clock.monotonic() - PATIENCE_MS
      for (const [place, line] of forOwn) {
        for (const waiting of line) if (waiting.sinceMs <= sinceMs) giveUp(line, waiting)
        if (line.size === 0) forOwn.delete(place)
      }
      for (const waiting of forAny) {
        if (waiting.sinceMs > sinceMs) continue
        giveUp(forAny, waiting)
        leave(waiting.place)
      }
      if (forAny.size + forOwn.size === 0) return
      watch()
      if (surplus?.hasOthers && !isSharing) void offerToOthers(surplus)
    })
  }

  /** This process begins with what waits the longest, so it keeps as much of that as it has places. */
  async function offerToOthers(others: Surplus): Promise<void> {
    const waiting = [...forAny, ...[...forOwn.values()].flatMap((line) => [...line])].filter(isForAnyProcess)
    const [oldest] = waiting
    if (waiting.length <= most || clock.monotonic() - oldest!.sinceMs < SURPLUS_MS) return
    isSharing = true
    try {
      for (const one of await others.choose(waiting.slice(most).reverse())) leaveLine(one)
    } catch {
      // Nothing was lost: they still wait here, and the next look asks again.
    } finally {
      isSharing = false
    }
  }

  /** It may have begun meanwhile. */
  function leaveLine(waiting: Waiting): void {
    const line = forOwn.get(waiting.place)
    if (line?.has(waiting)) giveUp(line, waiting)
    else if (forAny.has(waiting)) {
      giveUp(forAny, waiting)
      leave(waiting.place)
    }
  }

  function offer(): void {
    for (const [place, line] of forOwn) advance(place, line)
    while (forAny.size > 0 && shared.hasRoomForFirst) {
      const next = first(forAny)!
      forAny.delete(next)
      shared.first.add(next.place)
      next.end(true)
    }
  }
  shared.onFreeForFirst = offer

  const isFull = (place: string) => counted.count(place) >= shared.shareOfFirst(place, share)

  return {
    isHanging: (place) => slow.total() >= most / 2 && slow.count(place) > 0,
    take(place, lane) {
      if (isFull(place)) {
        const line = forOwn.get(place) ?? new Set()
        forOwn.set(place, line)
        return wait(line, place, lane)
      }
      counted.add(place)
      if (!shared.hasRoomForFirst) return wait(forAny, place, lane)
      shared.first.add(place)
      return true
    },
    give(place) {
      shared.first.remove(place)
      leave(place)
      offer()
      shared.onFreeForRows()
    },
    slow(place) {
      slow.add(place)
      return () => slow.remove(place)
    },
  }
}

function giveUp(line: Set<Waiting>, waiting: Waiting): void {
  line.delete(waiting)
  waiting.end(false)
}

function isForAnyProcess(waiting: Waiting): waiting is Waiting & { readonly lane: LeftLane } {
  return waiting.lane !== undefined
}

function first<T>(line: ReadonlySet<T>): T | undefined {
  return line.values().next().value
}
