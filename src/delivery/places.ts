/** What this process has in hand, and what that says of destinations. */
import type { Run } from './run.ts'
import { SharedPlaces } from './shared-places.ts'

/** Work that takes longer must not keep the rest waiting for a batch to be worth it. */
const STUCK_MS = 100
/** A destination whose calls take longer hangs: see `hanging`. */
const HANGING_MS = 1_000

export class Places {
  readonly #most: number
  readonly running = new Set<Run>()
  /** Claimed and not begun. */
  waiting: Run[] = []
  /** Something is due that could not be claimed at the last look. */
  areHeldBack = false
  readonly shared: SharedPlaces

  constructor(most: number) {
    this.#most = most
    this.shared = new SharedPlaces(most, () => ({
      running: this.running.size,
      waiting: this.waiting.length,
      areHeldBack: this.areHeldBack,
      countOf: (place) => this.#countOf(place),
    }))
  }

  #countOf(place: string): number {
    let count = 0
    for (const { delivery } of this.running) if (delivery.destination === place) count++
    return count
  }

  get all(): Run[] {
    return [...this.running, ...this.waiting]
  }

  /** What was claimed by the worker and has not ended. */
  get claimed(): number {
    return this.running.size + this.waiting.length
  }

  /** How many could be begun at once. */
  get free(): number {
    return Math.max(this.#most - this.shared.first.total() - this.claimed, 0)
  }

  /** Rows that could be begun at once or, where first attempts have their places, when the next of those ends. */
  get sure(): number {
    return Math.max(this.free, this.shared.reserved - this.claimed)
  }

  /** Rows that wait here while first attempts have the places could be run by another process. */
  claimable(room: number): number {
    return this.shared.first.total() === 0 ? room : Math.min(room, this.sure)
  }

  /** A first attempt never takes the last place of a share from rows: where a share is one place, rows may have one more. */
  mostOf(share: number): number {
    return this.shared.first.total() === 0 ? share : Math.max(share, this.shared.reserved + 1)
  }

  get isFull(): boolean {
    return !this.shared.hasRoomForRow
  }

  get hasSuspect(): boolean {
    return [...this.running, ...this.waiting].some(({ row }) => row.suspect)
  }

  /** Those that wait and are chosen go; answers them. */
  take(isChosen: (run: Run) => boolean): Run[] {
    const taken = this.waiting.filter(isChosen)
    if (taken.length > 0) this.waiting = this.waiting.filter((run) => !isChosen(run))
    return taken
  }

  countStuck(now: number): number {
    let stuck = 0
    for (const { startedMs } of this.running) if (now - startedMs > STUCK_MS) stuck++
    return stuck
  }

  /** The destination has as many as one may have. */
  isCrowded(destination: string, most: number): boolean {
    return destination !== '' && (this.countByDestination()[destination] ?? 0) >= most
  }

  /** Calls under way and rows claimed for each destination. */
  countByDestination(): Record<string, number> {
    const counts: Record<string, number> = Object.create(null)
    for (const [place, count] of this.shared.first.entries()) counts[place] = count
    for (const { delivery } of this.all) {
      if (delivery.destination !== '') counts[delivery.destination] = (counts[delivery.destination] ?? 0) + 1
    }
    return counts
  }

  /** Destinations that get no more for now: together, those that hang may have half of all places, and the rest is for others. */
  hanging(now: number): string[] {
    const slow = [...this.running].filter(({ startedMs }) => now - startedMs > HANGING_MS)
    if (slow.length < this.#most / 2) return []
    return [...new Set(slow.map(({ delivery }) => delivery.destination))].filter((destination) => destination !== '')
  }
}
