/** Reads the log for one subscription, a page at a time; events that are not taken at once stay for the next turn. */
import { type AnyEvent, afterTimeout, FIRST_WINDOW, type FilteredPage, type Page, type Tailer } from '../log/index.ts'
import { SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import type { Definition } from './definition.ts'

/** Events per read. */
const PAGE = 500

export interface PagesOptions {
  readonly definition: Pick<Definition, 'typeExpression' | 'tenant'>
  readonly tailer: Tailer
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
  #ahead: { from: bigint; page: Promise<FilteredPage> } | undefined
  #window = FIRST_WINDOW

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

  /** Events from this position on are taken again. */
  rewind(position: bigint): void {
    this.#next = this.#events.findIndex((event) => event.position === position)
  }

  /** Reads on behind a position. False when there is nothing to read. */
  async turn(from: bigint): Promise<boolean> {
    const { tailer, limit } = this.#options
    const most = limit ? await limit() : tailer.frontier
    if (from >= most || from >= tailer.frontier) return false
    try {
      const page = await this.#readFrom(from)
      this.#window = page.window
      this.#open(page, most)
    } catch (error) {
      // A page that takes longer than the server allows is asked for in smaller pieces.
      const narrower = sqlstateOf(error) === SQLSTATE.queryCanceled ? afterTimeout(this.#window) : undefined
      if (narrower === undefined) throw error
      this.#window = narrower
    }
    return true
  }

  #open(page: Page, most: bigint): void {
    const last = page.events.at(-1)?.position ?? 0n
    this.#events = last > most ? page.events.filter(({ position }) => position <= most) : page.events
    this.#next = 0
    this.upTo = page.upTo > most ? most : page.upTo
    // Far behind, the next page is fetched while this one is handled.
    if (page.events.length > 0 && page.upTo < this.#options.tailer.frontier && !this.#options.limit) {
      this.#ahead = { from: page.upTo, page: this.#read(page.upTo) }
    }
  }

  #readFrom(from: bigint): Promise<FilteredPage> {
    const ahead = this.#ahead
    this.#ahead = undefined
    return ahead?.from === from ? ahead.page : this.#read(from)
  }

  #read(from: bigint): Promise<FilteredPage> {
    const { tailer, definition } = this.#options
    const { typeExpression, tenant } = definition
    const page = tailer.readFiltered(from, PAGE, { type: typeExpression, tenant, window: this.#window })
    // The caller that awaits the page handles its failure; a page that is never asked for must not end the process.
    page.catch(() => {})
    return page
  }
}
