/**
 * Virtual time and the order of everything that happens in it. One step is one thing that comes from outside of the code
 * under test: a statement arrives, an answer comes back, a timer is due, a call ends, an event is committed, a fault
 * begins. Between two steps the code runs until nothing of it can go on by itself, so a run depends on its seed alone.
 */
import type { Random } from './random.ts'

interface Planned {
  readonly at: number
  readonly order: number
  run: (() => void) | undefined
}

export class World {
  readonly random: Random
  /** Milliseconds since the run began. */
  now = 0
  steps = 0
  /** Called for every note; undefined while nobody reads them. */
  tell: ((line: string) => void) | undefined
  readonly #planned: Planned[] = []
  #ordered = 0
  readonly #immediates: (() => void)[] = []

  constructor(random: Random) {
    this.random = random
  }

  /** Runs once after `ms`. The returned function takes it back. */
  after(ms: number, run: () => void): () => void {
    const planned: Planned = { at: this.now + ms, order: this.#ordered++, run }
    this.#push(planned)
    return () => {
      planned.run = undefined
    }
  }

  /** `toLine` is asked only where somebody reads notes. */
  note(toLine: () => string): void {
    this.tell?.(`${this.now.toFixed(1).padStart(10)}  ${toLine()}`)
  }

  /** Plays steps until `isOver`, or until nothing is planned, or time is up. */
  async play(isOver: () => boolean, untilMs: number): Promise<void> {
    const restore = this.#takeImmediates()
    try {
      await this.#settle()
      while (!isOver()) {
        const next = this.#pop()
        if (next === undefined || next.at > untilMs) return
        if (next.run === undefined) continue
        this.now = next.at
        this.steps++
        next.run()
        await this.#settle()
      }
    } finally {
      restore()
    }
  }

  /** Until all promises have been heard, and everything that waits for the event loop to turn has had its turn. */
  async #settle(): Promise<void> {
    await turn()
    while (this.#immediates.length > 0) {
      this.#immediates.shift()!()
      await turn()
    }
  }

  /** The code under test waits for turns of the event loop by `setImmediate`: here a turn is part of the step. */
  #takeImmediates(): () => void {
    const original = globalThis.setImmediate
    const queue = ((run: (...args: unknown[]) => void, ...args: unknown[]) => {
      this.#immediates.push(() => run(...args))
    }) as unknown as typeof setImmediate
    globalThis.setImmediate = queue
    return () => {
      globalThis.setImmediate = original
    }
  }

  #push(planned: Planned): void {
    const heap = this.#planned
    let at = heap.length
    heap.push(planned)
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(planned, heap[above]!)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = planned
  }

  #pop(): Planned | undefined {
    const heap = this.#planned
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++
      if (!isBefore(heap[below]!, last)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
    return first
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

const realImmediate = globalThis.setImmediate

/** One turn of the real event loop: every promise that can resolve has resolved by then. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    realImmediate(resolve)
  })
}
