/**
 * Hands events to everybody in this process who listens, without ever waiting for one of them. All share one ring of the
 * newest events; each has its own place in it. Whoever falls out of the ring is told how many it missed and goes on, by
 * `overflow`, with the oldest that is kept or with what is new: it is neither waited for nor cut off.
 */
import { AftercommitError } from '../errors.ts'
import type { SystemEvent } from './system-event.ts'

/** Stands where so many events would have been, had the subscriber been faster. What it keeps from events may be stale. */
export interface Missed {
  readonly missed: number
}

export type BroadcastReader<Event = SystemEvent> = AsyncIterableIterator<Event | Missed, undefined>

export interface Broadcaster<Event = SystemEvent> {
  /** Never waits; answers how many subscribers there are to get it. */
  send(event: Event): number
  /** What is sent from now on. Ends with the signal, with `break`, and when the instance stops. */
  subscribe(options?: { signal?: AbortSignal | undefined }): BroadcastReader<Event>
  readonly subscriberCount: number
  /** Subscribers get what they have not read yet, then end; nothing is taken any more. */
  close(): void
}

/** `block` is for what is durable; whoever listens here is never waited for, and goes on with the oldest that is kept. */
export type OverflowPolicy = 'block' | 'drop' | 'drop_oldest'

export interface BroadcasterOptions {
  /** Events kept for slow subscribers; 1024 unless told. */
  readonly ring?: number | undefined
  /** Where a subscriber goes on that fell out of the ring: `drop` skips what is kept too. */
  readonly overflow?: (() => OverflowPolicy) | undefined
  readonly onMissed?: ((missed: number) => void) | undefined
  readonly onSubscribe?: (() => void) | undefined
}

export function createBroadcaster<Event = SystemEvent>(options: BroadcasterOptions = {}): Broadcaster<Event> {
  return new RingBroadcaster<Event>(options)
}

type Turn<Event> = (result: IteratorResult<Event | Missed, undefined>) => void

class RingBroadcaster<Event> implements Broadcaster<Event> {
  readonly #ring: Event[] = []
  readonly #size: number
  readonly #readers = new Set<Reader<Event>>()
  readonly #options: BroadcasterOptions
  #closed = false
  /** Events ever sent: the place of the next one. */
  #sent = 0

  constructor(options: BroadcasterOptions) {
    const { ring = 1024 } = options
    if (!Number.isSafeInteger(ring) || ring < 1) {
      throw new AftercommitError(
        'BAD_OPTION',
        'The `ring` of a broadcaster must be a whole number of events from 1 up.',
      )
    }
    this.#size = ring
    this.#options = options
  }

  get subscriberCount(): number {
    return this.#readers.size
  }

  send(event: Event): number {
    if (this.#closed) return 0
    this.#ring[this.#sent % this.#size] = event
    this.#sent++
    for (const reader of this.#readers) reader.serve()
    return this.#readers.size
  }

  subscribe({ signal }: { signal?: AbortSignal | undefined } = {}): BroadcastReader<Event> {
    const end = () => {
      this.#readers.delete(reader)
      signal?.removeEventListener('abort', end)
      reader.end()
    }
    const reader = new Reader<Event>(this.#sent, (at) => this.#look(at), end)
    if (this.#closed || signal?.aborted) {
      reader.end()
      return reader
    }
    signal?.addEventListener('abort', end, { once: true })
    this.#readers.add(reader)
    this.#options.onSubscribe?.()
    return reader
  }

  close(): void {
    this.#closed = true
    for (const reader of this.#readers) reader.finish()
    this.#readers.clear()
  }

  /** What a subscriber at this place gets next; undefined when there is nothing yet. */
  #look(at: number): { value: Event | Missed; next: number } | undefined {
    const oldest = Math.max(0, this.#sent - this.#size)
    if (at < oldest) {
      const next = this.#options.overflow?.() === 'drop' ? this.#sent : oldest
      this.#options.onMissed?.(next - at)
      return { value: { missed: next - at }, next }
    }
    return at < this.#sent ? { value: this.#ring[at % this.#size]!, next: at + 1 } : undefined
  }
}

class Reader<Event> implements AsyncIterableIterator<Event | Missed, undefined> {
  readonly #look: (at: number) => { value: Event | Missed; next: number } | undefined
  readonly #leave: () => void
  readonly #turns: Turn<Event>[] = []
  #at: number
  /** `finishing`: what is there is still given. */
  #state: 'open' | 'finishing' | 'ended' = 'open'

  constructor(
    at: number,
    look: (at: number) => { value: Event | Missed; next: number } | undefined,
    leave: () => void,
  ) {
    this.#at = at
    this.#look = look
    this.#leave = leave
  }

  next(): Promise<IteratorResult<Event | Missed, undefined>> {
    return new Promise((resolve) => {
      this.#turns.push(resolve)
      this.serve()
    })
  }

  async return(): Promise<IteratorResult<Event | Missed, undefined>> {
    this.#leave()
    return DONE
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Gives whoever waits what there is. */
  serve(): void {
    while (this.#turns.length > 0) {
      const found = this.#state === 'ended' ? undefined : this.#look(this.#at)
      if (found === undefined && this.#state === 'open') return
      const turn = this.#turns.shift()!
      if (found === undefined) turn(DONE)
      else {
        this.#at = found.next
        turn({ value: found.value, done: false })
      }
    }
  }

  finish(): void {
    if (this.#state === 'open') this.#state = 'finishing'
    this.serve()
  }

  end(): void {
    this.#state = 'ended'
    this.serve()
  }
}

const DONE = { value: undefined, done: true } as const
