/** How far a subscription of the in-memory twin has come. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent, StartPoint } from '../log/index.ts'
import type { MemoryLog } from './memory-log.ts'

export class MemoryCheckpoint {
  readonly #log: MemoryLog
  readonly #matches: (event: AnyEvent) => boolean
  /** Place in the log of the first event that is not finished. Nothing is ever inserted below what is final. */
  #at = 0

  constructor(log: MemoryLog, matches: (event: AnyEvent) => boolean) {
    this.#log = log
    this.#matches = matches
  }

  /** The first event that is not finished, whether or not it is final. */
  get next(): AnyEvent | undefined {
    const { events } = this.#log
    while (this.#at < events.length && !this.#matches(events[this.#at]!)) this.#at++
    return events[this.#at]
  }

  /** Everything at or below is finished. */
  get position(): bigint {
    const { next } = this
    const { frontier } = this.#log
    return next === undefined || next.position > frontier ? frontier : next.position - 1n
  }

  /** The next events up to a position, with their places. */
  collect(most: number, upTo: bigint): { event: AnyEvent; at: number }[] {
    const { events } = this.#log
    const found: { event: AnyEvent; at: number }[] = []
    for (let at = this.#at; at < events.length && found.length < most; at++) {
      const event = events[at]!
      if (event.position > upTo) break
      if (this.#matches(event)) found.push({ event, at })
    }
    return found
  }

  /** Everything up to this place is finished. */
  pass(at: number): void {
    this.#at = at + 1
  }

  seek(to: StartPoint): void {
    const { events } = this.#log
    const target = this.find(to)
    const found = events.findIndex(({ position }) => position > target)
    this.#at = found < 0 ? events.length : found
  }

  /** The position below the first event that a start point speaks of. */
  find(to: StartPoint): bigint {
    const { events, frontier } = this.#log
    if (to === 'start') return 0n
    if (to === 'head') return frontier
    if (typeof to === 'bigint' && to >= 0n) return to
    if (to instanceof Date && Number.isFinite(to.getTime())) {
      const first = events.find(({ recordedAt }) => recordedAt >= to)
      return first ? first.position - 1n : frontier
    }
    throw new AftercommitError(
      'BAD_OPTION',
      "`from` must be 'start', 'head', a position (bigint, 0 or more) or a valid Date.",
    )
  }
}
