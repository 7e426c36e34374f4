/**
 * Which event of a hook may run now, oldest first. One lane per key: an event waits while an earlier one of its key runs
 * or waits for its next try; other keys flow. Where only the latest counts, a new event takes the place of the one that
 * waits. Pure: it knows events and times, not handlers.
 */
import type { AnyEvent } from '../log/index.ts'
import type { FaultStreak } from '../subscriptions/index.ts'

export interface Settling {
  /** Of what waits in a lane only the newest is kept. */
  readonly latestWins: boolean
  /** A lane runs when nothing came for so long, or when the first has waited for `maxWaitMs`. */
  readonly waitMs: number
  readonly maxWaitMs: number
}

export interface Item {
  readonly key: string
  event: AnyEvent
  /** Position of the first event it stands for, and how many these are. */
  from: bigint
  coalesced: number
  /** Tries that counted. */
  attempts: number
  /** Tries in a row that did not. */
  faults: FaultStreak | undefined
}

interface Lane {
  readonly key: string
  /** In order, each also in the queue. */
  readonly waiting: Item[]
  running: Item | undefined
  /** Not before this time. */
  dueMs: number
  /** When the first of those that wait came. */
  sinceMs: number
  /** A call that was given up and has not ended: the next waits for it. */
  held: boolean
}

export class Lanes {
  readonly #settling: Settling
  readonly #lanes = new Map<string, Lane>()
  /** The lanes of all events that wait, an entry for each, oldest first: mostly the first may run, and nobody searches. */
  readonly #queue: Lane[] = []
  #running = 0

  constructor(settling: Settling) {
    this.#settling = settling
  }

  /** Events that wait or run. */
  get size(): number {
    return this.#queue.length + this.#running
  }

  add(event: AnyEvent, key: string, nowMs: number): void {
    const lane = this.#lane(key)
    const [waits] = lane.waiting
    if (waits && this.#settling.latestWins) {
      waits.event = event
      waits.coalesced++
    } else {
      if (!waits) lane.sinceMs = nowMs
      lane.waiting.push({ key, event, from: event.position, coalesced: 1, attempts: 0, faults: undefined })
      this.#queue.push(lane)
    }
    const { waitMs, maxWaitMs } = this.#settling
    const isRetried = waits !== undefined && (waits.attempts > 0 || waits.faults !== undefined)
    // One that waits for its next try keeps that time: news must not make it come sooner.
    if (waitMs > 0 && !isRetried) lane.dueMs = Math.min(nowMs + waitMs, lane.sinceMs + maxWaitMs)
  }

  /** Starts the oldest event that may run; undefined when none may. */
  begin(nowMs: number): Item | undefined {
    const at = this.#queue.findIndex((lane) => isFree(lane) && lane.dueMs <= nowMs)
    if (at < 0) return undefined
    const lane = this.#queue[at]!
    if (at === 0) this.#queue.shift()
    else this.#queue.splice(at, 1)
    lane.running = lane.waiting.shift()!
    lane.dueMs = 0
    this.#running++
    return lane.running
  }

  /** It is over with this event, one way or the other. */
  finish(item: Item): void {
    const lane = this.#end(item)
    this.#forgetIfEmpty(lane)
  }

  /** Tries it again at a time; where only the latest counts, what has come since takes its place. */
  retry(item: Item, dueMs: number): void {
    const lane = this.#end(item)
    lane.dueMs = Math.max(lane.dueMs, dueMs)
    const [newer] = lane.waiting
    if (newer && this.#settling.latestWins) {
      newer.attempts = item.attempts
      newer.faults = item.faults
      newer.coalesced += item.coalesced
      newer.from = item.from
    } else {
      lane.waiting.unshift(item)
      this.#queue.unshift(lane)
    }
  }

  /** Nothing of this key runs until it is let go. */
  hold(key: string): () => void {
    const lane = this.#lane(key)
    lane.held = true
    return () => {
      lane.held = false
      this.#forgetIfEmpty(lane)
    }
  }

  /** When the next event that only waits for its time is due; infinity when none is. */
  nextDueMs(): number {
    let due = Number.POSITIVE_INFINITY
    for (const lane of this.#queue) if (isFree(lane) && lane.dueMs < due) due = lane.dueMs
    return due
  }

  /** Whether everything up to a position is over. */
  isDoneUpTo(position: bigint): boolean {
    for (const { running, waiting } of this.#lanes.values()) {
      if (running && running.from <= position) return false
      if (waiting[0] && waiting[0].from <= position) return false
    }
    return true
  }

  #end(item: Item): Lane {
    const lane = this.#lanes.get(item.key)!
    lane.running = undefined
    this.#running--
    return lane
  }

  #forgetIfEmpty(lane: Lane): void {
    if (lane.waiting.length === 0 && !lane.running && !lane.held) this.#lanes.delete(lane.key)
  }

  #lane(key: string): Lane {
    const known = this.#lanes.get(key)
    if (known) return known
    const lane: Lane = { key, waiting: [], running: undefined, dueMs: 0, sinceMs: 0, held: false }
    this.#lanes.set(key, lane)
    return lane
  }
}

function isFree(lane: Lane): boolean {
  return lane.running === undefined && !lane.held
}
