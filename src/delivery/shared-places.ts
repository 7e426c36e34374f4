/**
 * One number of calls at a time for a process, `max_concurrency`, shared by first attempts and rows. Rows that are due are
 * sure of a tenth of the places, so a long backlog of events does not hold up retries.
 */
import { createTally } from './tally.ts'

export interface RowPlaces {
  readonly running: number
  /** Claimed and not begun. */
  readonly waiting: number
  /** Something is due that could not be claimed. */
  readonly areHeldBack: boolean
  countOf(place: string): number
}

export class SharedPlaces {
  readonly most: number
  /** First attempts under way. */
  readonly first = createTally()
  /** A first attempt that waits may be able to begin. */
  onFreeForFirst = () => {}
  /** A row that waits may be able to begin. */
  onFreeForRows = () => {}
  readonly #rows: () => RowPlaces

  constructor(most: number, rows: () => RowPlaces) {
    this.most = most
    this.#rows = rows
  }

  /** Places that rows are sure of. */
  get reserved(): number {
    return Math.ceil(this.most / 10)
  }

  get hasRoomForFirst(): boolean {
    const { running, waiting } = this.#rows()
    const kept = Math.min(waiting, Math.max(this.reserved - running, 0))
    return this.first.total() + running + kept < this.most
  }

  get hasRoomForRow(): boolean {
    return this.first.total() + this.#rows().running < this.most
  }

  /** How many first attempts of one place may be under way, given the share of a place. */
  shareOfFirst(place: string, share: number): number {
    const rows = this.#rows()
    const ofRows = rows.countOf(place)
    const kept = rows.areHeldBack ? Math.max(this.reserved - ofRows, 0) : 0
    return Math.max(share - ofRows - kept, 1)
  }
}

/** Places of first attempts alone. */
export function unsharedPlaces(most: number): SharedPlaces {
  return new SharedPlaces(most, () => ({ running: 0, waiting: 0, areHeldBack: false, countOf: () => 0 }))
}
