/** Reads the log for one subscription, a page at a time; what is not taken at once is kept for the next turn. */
import type { AnyEvent, Page, Tailer } from '../log/index.ts'
import { sqlstateOf } from '../postgres/index.ts'
import type { Definition } from './definition.ts'

/** Events per read. */
const PAGE = 500
/** Positions per read while a filter lets little through: a page must not take longer than a server allows. */
const FIRST_SPAN = 10_000n
const LONGEST_SPAN = 10_000_000n
const SHORTEST_SPAN = 10n

export interface PagesOptions {
  readonly definition: Pick<Definition, 'typeExpression' | 'tenant'>
  readonly tailer: Tailer
  /** How far may be read, where others must have come first. */
  readonly limit: (() => Promise<bigint>) | undefined
}

export class Pages {
  readonly #options: PagesOptions
  #events: readonly AnyEvent[] = []
  #next = 0
  /** Everything up to here is in this page or was before it. */
  upTo = 0n
  /** The next page, on its way. */
  #ahead: { from: bigint; page: Promise<Page> } | undefined
  #span = FIRST_SPAN

  constructor(options: PagesOptions) {
    this.#options = options
  }

  get isUsedUp(): boolean {
    return this.#next >= this.#events.length
  }

  /** How many of this page were taken. */
  get taken(): number {
    return this.#next
  }

  take(): AnyEvent {
    return this.#events[this.#next++]!
  }

  /** From this position on they are taken again. */
  rewind(position: bigint): void {
    this.#next = this.#events.findIndex((event) => event.position === position)
  }

  /** Reads on behind a position. False when there is nothing to read. */
  async turn(from: bigint): Promise<boolean> {
    const { tailer, limit } = this.#options
    const most = limit ? await limit() : tailer.frontier
    if (from >= most || from >= tailer.frontier) return false
    try {
      this.#open(await this.#readFrom(from), most)
    } catch (error) {
      // A page that takes longer than the server allows is asked for in smaller pieces.
      if (sqlstateOf(error) !== '57014' || this.#span <= SHORTEST_SPAN) throw error
      this.#span /= 4n
    }
    return true
  }

  #open(page: Page, most: bigint): void {
    const last = page.events.at(-1)?.position ?? 0n
    this.#events = last > most ? page.events.filter(({ position }) => position <= most) : page.events
    this.#next = 0
    this.upTo = page.upTo > most ? most : page.upTo
    this.#span = page.events.length > 0 ? FIRST_SPAN : this.#span < LONGEST_SPAN ? this.#span * 2n : this.#span
    // Far behind, the next page is fetched while this one is handled.
    if (page.events.length === PAGE && !this.#options.limit) {
      this.#ahead = { from: page.upTo, page: this.#read(page.upTo) }
    }
  }

  #readFrom(from: bigint): Promise<Page> {
    const ahead = this.#ahead
    this.#ahead = undefined
    return ahead?.from === from ? ahead.page : this.#read(from)
  }

  #read(from: bigint): Promise<Page> {
    const { tailer, definition } = this.#options
    const { typeExpression, tenant } = definition
    const page = tailer.read(from, PAGE, { type: typeExpression, tenant, span: this.#span })
    // Whoever awaits it hears of a failure; a page that is never asked for must not end the process.
    page.catch(() => {})
    return page
  }
}
