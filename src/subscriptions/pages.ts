/** Reads the log for one subscription, a page at a time; events that are not taken at once stay for the next turn. */
import type { AnyEvent, Follower, Page } from '../log/index.ts'

/** Events per read. */
const PAGE = 500

export interface PagesOptions {
  readonly follower: Follower
  /** The last position that may be read, for a subscription that comes after others. */
  readonly limit: (() => Promise<bigint>) | undefined
}

export class Pages {
  readonly #options: PagesOptions
  #events: readonly AnyEvent[] = []
  #next = 0
  /** Everything up to here is in this page or was before it. */
  upTo = 0n
  /** The next page, on its way. */
  #ahead: { from: bigint; page: Promise<Page | undefined> } | undefined

  constructor(options: PagesOptions) {
    this.#options = options
  }

  get isUsedUp(): boolean {
    return this.#next >= this.#events.length
  }

  /** Events of this page that were taken. */
  get taken(): number {
    return this.#next
  }

  take(): AnyEvent {
    return this.#events[this.#next++]!
  }

  /** Reads on behind a position. False when there is nothing to read. */
  async turn(from: bigint): Promise<boolean> {
    const { follower, limit } = this.#options
    const most = await limit?.()
    if ((most !== undefined && from >= most) || !follower.hasMore(from)) return false
    const page = await this.#readFrom(from)
    if (page) this.#open(page, most)
    return true
  }

  #open(page: Page, most: bigint | undefined): void {
    this.#next = 0
    if (most !== undefined) {
      this.#events = page.events.filter(({ position }) => position <= most)
      this.upTo = page.upTo > most ? most : page.upTo
      return
    }
    this.#events = page.events
    this.upTo = page.upTo
    // Far behind, the next page is fetched while this one is handled.
    if (page.events.length > 0 && this.#options.follower.hasMore(page.upTo)) {
      this.#ahead = { from: page.upTo, page: this.#read(page.upTo) }
    }
  }

  #readFrom(from: bigint): Promise<Page | undefined> {
    const ahead = this.#ahead
    this.#ahead = undefined
    return ahead?.from === from ? ahead.page : this.#read(from)
  }

  #read(from: bigint): Promise<Page | undefined> {
    const page = this.#options.follower.read(from, PAGE)
    // The caller that awaits the page handles its failure; a page that is never asked for must not end the process.
    page.catch(() => {})
    return page
  }
}
