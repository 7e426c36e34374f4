/**
 * What this process has under way. First attempts and rows share one number of places, `max_concurrency`. A place is given
 * to a *share*: a destination, or the name of work that goes to none. What a call that asks for a place meets, failures first:
 *
 *   its share hangs          calls that take over a second hold half of the places together; no other of theirs begins
 *   it waited for a second   a first attempt becomes a row, unless every place is taken by calls that end soon
 *   others could do it       a first attempt becomes a row for another process, which has room for it
 *   its share is full        one share holds nine tenths of the places at most
 *   all places are taken     it waits; shares that wait have the next free place in turn
 *
 * Rows that are due are sure of a tenth of the places, so a long backlog of events does not hold up retries.
 */
import type { Clock } from '../runtime/index.ts'
import type { LeftLane } from '../subscriptions/index.ts'
import type { Run } from './run.ts'
import type { Surplus } from './surplus.ts'
import { createTally, type Tally } from './tally.ts'

export interface InFlightOptions {
  readonly clock: Clock
  /** Places of the process. */
  readonly most: number
  readonly surplus?: Surplus | undefined
}

/** From then on a call is slow: its share may hang, and what other actions of its event leave is written. */
export const SLOW_MS = 1_000
/** As long as a call may take before it is slow: an event is held by either, and not for longer. */
const PATIENCE_MS = SLOW_MS
/** From then on first attempts that wait are offered to other processes. */
const SURPLUS_MS = 100
/** A row that takes longer does not make other rows wait for a batch to be worth it. */
const STUCK_MS = 100

interface Call {
  readonly share: string
  readonly startedMs: number
}

interface Waiting {
  readonly share: string
  readonly lane: LeftLane | undefined
  readonly sinceMs: number
  end(hasPlace: boolean): void
}

export class InFlight {
  readonly clock: Clock
  readonly most: number
  /** Rows that have begun. */
  readonly running = new Set<Run>()
  /** Rows that were claimed and have not begun. */
  waiting: Run[] = []
  /** Something is due that could not be claimed at the last look. */
  areHeldBack = false
  /** A row that waits may be able to begin. */
  onFreeForRows = () => {}
  readonly #surplus: Surplus | undefined
  readonly #perShare: number
  /** Calls under way, by share. */
  readonly #first: Tally = createTally()
  readonly #rows: Tally = createTally()
  readonly #calls = new Set<Call>()
  /** First attempts that wait, by share. The share that got a place last comes last. */
  readonly #lines = new Map<string, Set<Waiting>>()
  #isWatched = false
  #isOffering = false

  constructor(options: InFlightOptions) {
    this.#surplus = options.surplus
    this.clock = options.clock
    this.most = options.most
    this.#perShare = mostPerShare(options.most)
  }

  /** True when there is a place at once; else resolves with whether there was one in time. `lane`: of the row that any process may run. */
  take(share: string, lane?: LeftLane): true | Promise<boolean> {
    const line = this.#lines.get(share)
    if (line === undefined && this.#hasRoomForFirst && !this.#isFull(share)) {
      this.#first.add(share)
      return true
    }
    if (!this.#isWatched) this.#watch()
    const waiting = line ?? new Set()
    if (line === undefined) this.#lines.set(share, waiting)
    return new Promise((end) => waiting.add({ share, lane, sinceMs: this.clock.monotonic(), end }))
  }

  /** A first attempt has ended. */
  give(share: string): void {
    this.#first.remove(share)
    this.serve()
    this.onFreeForRows()
  }

  begin(run: Run): void {
    this.running.add(run)
    this.#rows.add(run.share)
  }

  /** A row has ended. */
  end(run: Run): void {
    if (this.running.delete(run)) this.#rows.remove(run.share)
  }

  /** Gives free places to first attempts that wait, to one of each share in turn. */
  serve(): void {
    // A share that gets a place moves behind the others.
    for (const [share, line] of this.#lines) {
      if (!this.#hasRoomForFirst) return
      if (this.#isFull(share)) continue
      const [next] = line
      this.#lines.delete(share)
      line.delete(next!)
      if (line.size > 0) this.#lines.set(share, line)
      this.#first.add(share)
      next!.end(true)
    }
  }

  /** A call did not end at once. */
  enter(call: Call): void {
    this.#calls.add(call)
  }

  leave(call: Call): void {
    this.#calls.delete(call)
  }

  /** The share has slow calls, and all slow calls hold half of the places. */
  isHanging(share: string): boolean {
    return this.#slow.some((call) => call.share === share)
  }

  get hanging(): string[] {
    return [...new Set(this.#slow.map(({ share }) => share))]
  }

  /** Calls that take long, where they hold half of the places. */
  get #slow(): Call[] {
    const since = this.clock.monotonic() - SLOW_MS
    const slow: Call[] = []
    // In the order in which they began: mostly the first says that there are none.
    for (const call of this.#calls) {
      if (call.startedMs >= since) break
      slow.push(call)
    }
    return slow.length >= this.most / 2 ? slow : []
  }

  get all(): Run[] {
    return [...this.running, ...this.waiting]
  }

  /** Rows that were claimed and have not ended. */
  get claimed(): number {
    return this.running.size + this.waiting.length
  }

  /** Rows that could begin at once. */
  get free(): number {
    return Math.max(this.most - this.#first.total() - this.claimed, 0)
  }

  /** Rows that could begin at once or, where first attempts have their places, when the next of those ends. */
  get sure(): number {
    return Math.max(this.free, this.#reserved - this.claimed)
  }

  /** Rows that wait here while first attempts have the places could be run by another process. */
  claimable(room: number): number {
    return this.#first.total() === 0 ? room : Math.min(room, this.sure)
  }

  /** Rows of one share that may be claimed: first attempts never take the last place of a share from rows. */
  get mostOfShare(): number {
    return this.#first.total() === 0 ? this.#perShare : Math.max(this.#perShare, this.#reserved + 1)
  }

  get hasRoomForRow(): boolean {
    return this.#first.total() + this.running.size < this.most
  }

  get hasSuspect(): boolean {
    return this.all.some(({ row }) => row.suspect)
  }

  /** Takes chosen rows that wait. */
  takeBack(isChosen: (run: Run) => boolean): Run[] {
    const taken = this.waiting.filter(isChosen)
    if (taken.length > 0) this.waiting = this.waiting.filter((run) => !isChosen(run))
    return taken
  }

  countStuck(): number {
    const since = this.clock.monotonic() - STUCK_MS
    let stuck = 0
    for (const { startedMs } of this.running) if (startedMs < since) stuck++
    return stuck
  }

  /** The share has as many calls and claimed rows as one may have. */
  isCrowded(share: string): boolean {
    return (this.countByShare()[share] ?? 0) >= this.#perShare
  }

  /** Rows of one name without a destination that may be claimed beside so many more: quick work is claimed in large batches. */
  mostOfName(room: number): number {
    return Math.max(this.mostOfShare, Math.ceil((this.claimed + room) * 0.9))
  }

  /** The same for destinations alone, whose limits all processes keep together. */
  countByDestination(): Record<string, number> {
    return Object.fromEntries(Object.entries(this.countByShare()).filter(([share]) => !share.startsWith(' ')))
  }

  /** First attempts under way and rows claimed, by share. */
  countByShare(): Record<string, number> {
    const counts: Record<string, number> = Object.create(null)
    for (const tally of [this.#first, this.#rows])
      for (const [share, count] of tally.entries()) counts[share] = (counts[share] ?? 0) + count
    for (const { share } of this.waiting) counts[share] = (counts[share] ?? 0) + 1
    return counts
  }

  /** Places that rows are sure of. */
  get #reserved(): number {
    return Math.ceil(this.most / 10)
  }

  get #hasRoomForFirst(): boolean {
    const kept = Math.min(this.waiting.length, Math.max(this.#reserved - this.running.size, 0))
    return this.#first.total() + this.running.size + kept < this.most
  }

  #isFull(share: string): boolean {
    const ofRows = this.#rows.count(share)
    const kept = this.areHeldBack ? Math.max(this.#reserved - ofRows, 0) : 0
    return this.#first.count(share) >= Math.max(this.#perShare - ofRows - kept, 1)
  }

  /** One timer for all first attempts that wait: most of them do not wait for long. */
  #watch(): void {
    const surplus = this.#surplus
    this.#isWatched = true
    this.clock.setTimer(surplus?.hasOthers ? SURPLUS_MS : PATIENCE_MS / 4, () => {
      this.#isWatched = false
      this.#giveUpLate()
      if (this.#lines.size === 0) return
      this.#watch()
      if (surplus?.hasOthers && !this.#isOffering) void this.#offer(surplus)
    })
  }

  /** Rows for calls of a full share let events of other shares begin. Where all places are busy they would help nothing. */
  #giveUpLate(): void {
    if (!this.#hasRoomForFirst && this.#slow.length === 0) return
    const sinceMs = this.clock.monotonic() - PATIENCE_MS
    for (const [share, line] of this.#lines) {
      for (const waiting of line) {
        if (waiting.sinceMs > sinceMs) break
        this.#giveUp(line, waiting)
      }
      if (line.size === 0) this.#lines.delete(share)
    }
  }

  /** This process begins with those that wait the longest, so it keeps as many of them as it has places. */
  async #offer(surplus: Surplus): Promise<void> {
    const waiting = [...this.#lines.values()].flatMap((line) => [...line]).filter(isForAnyProcess)
    const oldest = waiting.reduce((least, { sinceMs }) => Math.min(least, sinceMs), Number.POSITIVE_INFINITY)
    if (waiting.length <= this.most || this.clock.monotonic() - oldest < SURPLUS_MS) return
    this.#isOffering = true
    try {
      for (const one of await surplus.choose(waiting.slice(this.most).reverse())) this.#leave(one)
    } catch {
      // Nothing was lost: they still wait here, and the next look asks again.
    } finally {
      this.#isOffering = false
    }
  }

  /** It may have begun meanwhile. */
  #leave(waiting: Waiting): void {
    const line = this.#lines.get(waiting.share)
    if (!line?.has(waiting)) return
    this.#giveUp(line, waiting)
    if (line.size === 0) this.#lines.delete(waiting.share)
  }

  #giveUp(line: Set<Waiting>, waiting: Waiting): void {
    line.delete(waiting)
    waiting.end(false)
  }
}

/** One share leaves a tenth of the places to all others. */
function mostPerShare(places: number): number {
  return Math.max(1, Math.floor(places * 0.9))
}

/** The share of a place that a call takes: its destination or, where it goes to none, the name of its work behind a space. */
export function shareOf(destination: string, name: string): string {
  return destination === '' ? ` ${name}` : destination
}

function isForAnyProcess(waiting: Waiting): waiting is Waiting & { readonly lane: LeftLane } {
  return waiting.lane !== undefined
}
