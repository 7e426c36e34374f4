/**
 * Which events may run now. An event waits while an earlier one of its key is running, waiting for its next try, or being
 * redriven; every other key flows. Pure: it knows events and times, not handlers.
 */
import type { AnyEvent } from '../log/index.ts'
import type { FaultStreak } from './fault-streak.ts'

export interface Item {
  readonly event: AnyEvent
  readonly key: string
  /** Where it came from: read from the log, a letter that is redriven, or from behind one. */
  readonly source: 'log' | 'letter' | 'parked'
  /** The letter, when it came from one. */
  readonly letter: bigint | undefined
  /** What `key` threw for it. */
  keyError?: unknown
  /** It may be what ended the process before. */
  suspect?: boolean
  /** Tries that counted. */
  attempts: number
  /** Failures in a row in which the database or the path to it may have had a part. */
  faults: FaultStreak | undefined
  /** `status` shows why it is repeated. */
  isShown?: boolean
  /** On the clock that never jumps. */
  firstTriedMs: number | undefined
}

interface Lane {
  readonly key: string
  readonly queue: Item[]
  running: boolean
  /** Not before this time. */
  dueMs: number
  /** A call that was given up and has not ended: the next try waits for it. */
  lingering: Promise<unknown> | undefined
}

export function toItem(event: AnyEvent, key: string, source: Item['source'] = 'log', letter?: bigint): Item {
  return { event, key, source, letter, attempts: 0, faults: undefined, firstTriedMs: undefined }
}

export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  /** Those with nothing under way: few, while all others may be a thousand. */
  readonly #idle = new Set<Lane>()

  get busy(): boolean {
    return this.#lanes.size > 0
  }

  isHeld(key: string): boolean {
    return this.#lanes.has(key)
  }

  /** Puts an event behind whatever its key waits for. */
  add(item: Item): void {
    const lane = this.#lanes.get(item.key)
    if (lane) lane.queue.push(item)
    else {
      const added = { key: item.key, queue: [item], running: false, dueMs: 0, lingering: undefined }
      this.#lanes.set(item.key, added)
      this.#idle.add(added)
    }
  }

  /** The next event that may run now, oldest first. */
  next(nowMs: number): Item | undefined {
    let chosen: Item | undefined
    for (const lane of this.#idle) {
      const first = lane.queue[0]
      if (first === undefined || lane.dueMs > nowMs || lane.lingering) continue
      if (chosen === undefined || first.event.position < chosen.event.position) chosen = first
    }
    return chosen
  }

  begin(item: Item): void {
    const lane = this.#lanes.get(item.key)!
    lane.running = true
    this.#idle.delete(lane)
  }

  /** Done with, one way or another: the next of its key may run. */
  finish(item: Item): void {
    const lane = this.#lanes.get(item.key)!
    lane.queue.shift()
    lane.running = false
    lane.dueMs = 0
    if (lane.queue.length === 0) this.#forget(lane)
    else this.#idle.add(lane)
  }

  /** To be tried again. */
  retry(item: Item, dueMs: number, lingering?: Promise<unknown>, onFree?: () => void): void {
    const lane = this.#lanes.get(item.key)!
    lane.running = false
    lane.dueMs = dueMs
    this.#idle.add(lane)
    lane.lingering = lingering
    void lingering?.finally(() => {
      if (lane.lingering !== lingering) return
      lane.lingering = undefined
      onFree?.()
    })
  }

  /** Takes everything of a key that has not begun. */
  drain(key: string): Item[] {
    const lane = this.#lanes.get(key)
    if (!lane) return []
    const rest = lane.queue.splice(lane.running ? 1 : 0)
    if (lane.queue.length === 0) this.#forget(lane)
    return rest
  }

  #forget(lane: Lane): void {
    this.#lanes.delete(lane.key)
    this.#idle.delete(lane)
  }

  /** When the next waiting event is due; infinity when none is. */
  nextDueMs(): number {
    let due = Number.POSITIVE_INFINITY
    for (const lane of this.#idle) if (!lane.lingering && lane.dueMs < due) due = lane.dueMs
    return due
  }
}
