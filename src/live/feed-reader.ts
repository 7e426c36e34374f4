/**
 * One client's way through the log. What can happen, failures first:
 *
 *   revoked        what waits is dropped; the last item says so
 *   lagged         more waits for a client that had caught up than it may; what waits is dropped, the last item says
 *                  after which token it may resume
 *   place lost     history forked, the place lies beyond the log or before what is kept: `resync`, and on from the head
 *   database away  asked again with a growing delay, for as long as the client stays
 *
 *   placing ──the place is good──▶ catching up ──came to where the feed stands──▶ live
 *
 * Events come by one rule, whoever has read them: a page covers the positions above `after` up to `upTo`, and is taken
 * by a reader that stands within it, from where it stands. Nothing is left out, because a page that begins above the
 * reader is not taken; nothing comes twice, because what lies at or below it is not. Catching up, a reader fetches
 * pages itself, the next one when its client has taken the last; live, it takes those that the feed offers to all.
 */
import {
  type AnyEvent,
  afterFailure,
  FIRST_WINDOW,
  type FilteredPage,
  type Page,
  type ReadWindow,
} from '../log/index.ts'
import { classify } from '../postgres/index.ts'
import { abortable, type Clock, isThenable, retryUntil } from '../runtime/index.ts'
import type { FeedItem, FeedReader, FeedRequest, Identity, ResumeToken } from './feed.ts'
import { FeedBuffer } from './feed-buffer.ts'
import { compileFilter, type Filter } from './filter.ts'
import { isLost, type LogFacts } from './place.ts'
import { concerns, REVOKING, revokedBy } from './revocation.ts'
import { formatToken } from './token.ts'

/** What a reader needs of the feed it belongs to. */
export interface ReaderHost {
  readonly clock: Clock
  /** Up to here the feed has offered pages. */
  readonly standing: ResumeToken
  ready(): Promise<unknown>
  remove(reader: Reader): void
  match(events: readonly AnyEvent[], filter: Filter): readonly FeedItem[]
  /** `reader` is whose time it takes. */
  readPage(reader: object, after: bigint, limit: number, filter: Filter, window: ReadWindow): Promise<FilteredPage>
  readFacts(epoch: number): Promise<LogFacts>
  count(what: 'lagged' | 'sent', transport: string, by: number): void
}

export interface OfferedPage extends Page {
  readonly after: bigint
  /** Made once for all readers with the same filter. */
  matched(filter: Filter): readonly FeedItem[]
}

const MAX_BUFFERED = { events: 2_000, bytes: 4_000_000 }
/** Of a page that a reader fetches for itself: so much per client is in memory, however long it takes to send. */
const PAGE = { first: 10, most: 500, bytes: 256_000 }
/** How often to look whether the tailer has noticed what the database says already. */
const EPOCH_MS = 200

const MAX_POSITION = 2n ** 63n - 1n
const authEvents = compileFilter({ on: REVOKING, types: ['*'] })

export class Reader implements FeedReader {
  readonly request: FeedRequest
  readonly #host: ReaderHost
  readonly #filter: Filter
  readonly #buffer: FeedBuffer
  readonly #ended = new AbortController()
  readonly #onAbort = () => this.close()
  #state: 'placing' | 'catching up' | 'live' = 'placing'
  #place: ResumeToken = { epoch: 0, position: 0n }
  /** Everything up to here was handed out, or did not match. */
  #handed: ResumeToken | undefined
  #last: 'revoked' | 'lagged' | undefined
  #isClosed = false
  #pageSize = PAGE.first
  #window = FIRST_WINDOW
  /** Revocations above it count. */
  #since: bigint
  /** There while nothing waits and everything was taken. */
  #wake: (() => void) | undefined

  constructor(host: ReaderHost, request: FeedRequest) {
    this.request = request
    this.#host = host
    this.#filter = compileFilter(request)
    const { events = MAX_BUFFERED.events, bytes = MAX_BUFFERED.bytes } = request.maxBuffered ?? {}
    this.#buffer = new FeedBuffer({ events, bytes }, request.sizeOf)
    this.#since = request.since ?? MAX_POSITION
    if (request.signal.aborted) this.close()
    else request.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  get ended(): AbortSignal {
    return this.#ended.signal
  }

  get token(): string | undefined {
    const place = this.#wake === undefined ? this.#handed : this.#place
    return place && formatToken(place.epoch, place.position)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.request.signal.removeEventListener('abort', this.#onAbort)
    this.#host.remove(this)
    this.#end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly FeedItem[], void, void> {
    try {
      await this.#begin()
      while (this.#state === 'placing' && !this.ended.aborted) await this.#catchUp()
      if (!this.ended.aborted) yield []
      while (!this.#isClosed) {
        if (this.#last !== undefined) {
          yield [this.#lastItem(this.#last)]
          return
        }
        const { epoch } = this.#place
        const batch = this.#buffer.cut()
        if (batch === undefined) {
          await (this.#state === 'live' ? this.#waitForMore() : this.#catchUp())
          continue
        }
        const items = await this.#allowed(batch.items)
        if (this.ended.aborted) continue
        this.#host.count('sent', this.request.transport, items.length)
        if (items.length > 0) yield items
        this.#handed = { epoch, position: batch.upTo }
      }
    } finally {
      this.close()
    }
  }

  /** A page that follows what was offered before. */
  offer(page: OfferedPage): void {
    const { position } = this.#place
    if (this.#state !== 'live' || this.#last !== undefined || page.upTo <= position) return
    const isNew = ({ position: at }: AnyEvent) => at > position
    // It may have read further by itself, or have come from an instance that was ahead.
    const isAhead = page.after < position
    const items = isAhead ? this.#host.match(page.events.filter(isNew), this.#filter) : page.matched(this.#filter)
    this.#take(items, page.upTo)
    if (!this.#buffer.isTooFull) return
    this.#last = 'lagged'
    this.#host.count('lagged', this.request.transport, 1)
    this.#end()
  }

  /** Somebody was locked out at a position: this client perhaps. */
  heed(position: bigint, revoked: Identity): void {
    if (position <= this.#since || !concerns(revoked, this.request.identity ?? {})) return
    this.#last = 'revoked'
    this.#end()
  }

  /** The feed goes on in another epoch, which shares history with the old one up to a position. */
  enterEpoch(shared: bigint): void {
    if (this.#since > shared) this.#since = shared
    // A place that was not looked at yet is judged by its own epoch.
    if (this.#state === 'placing') return
    if (this.#place.position > shared) this.#resync()
    else this.#place = { epoch: this.#host.standing.epoch, position: this.#place.position }
  }

  async #begin(): Promise<void> {
    await this.#patiently(() => this.#host.ready())
    if (this.ended.aborted) return
    const { standing } = this.#host
    const { from, since = standing.position, identity } = this.request
    this.#since = since
    this.#place = from ?? standing
    this.#handed = this.#place
    if (from === undefined) this.#state = 'live'
    if (identity !== undefined) await this.#lookBack(since, standing.position)
  }

  /** Whoever was authorised by what was true then may have been revoked since, before this reader was there to hear it. */
  async #lookBack(since: bigint, upTo: bigint): Promise<void> {
    for (let position = since; position < upTo && !this.ended.aborted; ) {
      const page = await this.#patiently(() => this.#readPage(position, PAGE.most, authEvents))
      if (page === undefined) return
      for (const event of page.events) {
        const revoked = revokedBy(event)
        if (revoked !== undefined) this.heed(event.position, revoked)
      }
      position = page.upTo
    }
  }

  async #readPage(after: bigint, limit: number, filter: Filter): Promise<FilteredPage> {
    try {
      const page = await this.#host.readPage(this, after, limit, filter, this.#window)
      this.#window = page.window
      return page
    } catch (error) {
      this.#window = afterFailure(this.#window, error) ?? this.#window
      throw error
    }
  }

  /** One page forward, or to where the feed stands. */
  async #catchUp(): Promise<void> {
    const place = this.#place
    const { epoch, position } = this.#host.standing
    const page =
      place.position < position
        ? await this.#patiently(() => this.#readPage(place.position, this.#pageSize, this.#filter))
        : undefined
    // Asked after the page was read: what retention or a fork took meanwhile must not pass for an empty page.
    const facts = await this.#patiently(() => this.#host.readFacts(place.epoch))
    if (facts === undefined || place !== this.#place || this.#host.standing.epoch !== epoch) return
    if (facts.epoch !== epoch) {
      await this.#host.clock.sleep(EPOCH_MS, this.ended).catch(() => {})
    } else if (isLost(place, facts)) {
      this.#resync()
    } else {
      this.#place = { epoch, position: place.position }
      this.#state = 'catching up'
      if (page !== undefined) this.#takePage(page)
      if (this.#place.position >= this.#host.standing.position) this.#state = 'live'
    }
  }

  #takePage({ events, upTo }: Page): void {
    const items = this.#host.match(events, this.#filter)
    const bytes = this.#take(items, upTo)
    // All before it was handed out: a client that is cut off in a long stretch without an event need not begin again.
    if (items.length === 0) this.#handed = this.#place
    const fitting = Math.floor((PAGE.bytes * items.length) / Math.max(1, bytes))
    this.#pageSize = Math.max(1, Math.min(PAGE.most, this.#pageSize * 4, items.length === 0 ? PAGE.most : fitting))
  }

  /** Gives the bytes that now wait in addition. */
  #take(items: readonly FeedItem[], upTo: bigint): number {
    if (items.length > 0) this.#rouse()
    this.#place = { epoch: this.#place.epoch, position: upTo }
    return items.length === 0 ? 0 : this.#buffer.put(items, upTo)
  }

  /** Nothing was handed out of it yet: a client that is cut off now comes back with its old place, and is told then. */
  #resync(): void {
    this.#rouse()
    this.#buffer.drop()
    this.#place = this.#host.standing
    this.#state = 'live'
    const { epoch, position } = this.#place
    this.#take([{ kind: 'resync', token: formatToken(epoch, position) }], position)
  }

  async #allowed(items: readonly FeedItem[]): Promise<readonly FeedItem[]> {
    const { allows } = this.request
    if (allows === undefined) return items
    const allowed: FeedItem[] = []
    for (const item of items) {
      const answer = item.kind === 'event' ? allows(item.event) : true
      const isAllowed = isThenable(answer) ? await abortable(answer, this.ended).catch(this.#unlessEnded) : answer
      if (this.ended.aborted) return []
      if (isAllowed === true) allowed.push(item)
    }
    return allowed
  }

  readonly #unlessEnded = (error: unknown): undefined => {
    if (this.ended.aborted) return undefined
    throw error
  }

  #lastItem(last: 'revoked' | 'lagged'): FeedItem {
    return last === 'revoked' ? { kind: 'revoked' } : { kind: 'lagged', from: this.token! }
  }

  #end(): void {
    this.#rouse()
    this.#buffer.drop()
    this.#ended.abort()
  }

  /** Ends the wait for more. Up to here nothing matched. */
  #rouse(): void {
    const wake = this.#wake
    if (wake === undefined) return
    this.#handed = this.#place
    this.#wake = undefined
    wake()
  }

  async #waitForMore(): Promise<void> {
    if (this.ended.aborted) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  /** Asks until there is an answer; undefined once nobody waits for it any more. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T | undefined> {
    if (this.ended.aborted) return undefined
    return retryUntil(() => abortable(ask(), this.ended), {
      clock: this.#host.clock,
      signal: this.ended,
      mayRetry: (error) => classify(error) !== 'permanent',
    }).catch(this.#unlessEnded)
  }
}
