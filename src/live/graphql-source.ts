/**
 * One subscription: a reader of the feed as the iterator that GraphQL wants. It ends with something to say, or because
 * its client has left; never without a word. What it says last carries the token that the client may resume after.
 */
import { summarizeError, type ThrottledLog } from '../runtime/index.ts'
import type { BufferLimits, Feed, FeedItem, FeedReader, ResumeToken } from './feed.ts'
import type { Wanted } from './filter.ts'
import type { Connection } from './graphql-connection.ts'
import { sizeOf } from './graphql-event.ts'

export type Told = Extract<FeedItem, { kind: 'event' }> | Ending

export interface Ending {
  readonly kind: 'ending'
  readonly code: 'LAGGED' | 'RESYNC' | 'REVOKED' | 'STOPPED' | 'FAILED'
  readonly message: string
  /** Undefined for a client that may not come back. */
  readonly token: string | undefined
}

export interface SourceRequest extends Pick<Wanted, 'on' | 'types' | 'kinds' | 'aggregate'> {
  readonly from: ResumeToken | undefined
  readonly maxBuffered: Partial<BufferLimits> | undefined
}

export class Source implements AsyncIterableIterator<Told, undefined> {
  readonly #reader: FeedReader
  readonly #batches: AsyncIterator<readonly FeedItem[]>
  readonly #connection: Connection
  readonly #logRepeatedly: ThrottledLog
  #items: readonly FeedItem[] = []
  #at = 0
  #isOver = false

  /** Throws BAD_PATTERN. */
  constructor(feed: Feed, connection: Connection, request: SourceRequest, logRepeatedly: ThrottledLog) {
    const { transport, principal, tenant, identity, since, allows, signal } = connection
    this.#connection = connection
    this.#logRepeatedly = logRepeatedly
    this.#reader = feed.open({ ...request, transport, principal, tenant, identity, since, allows, signal, sizeOf })
    this.#batches = this.#reader[Symbol.asyncIterator]()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Told, undefined>> {
    const item = this.#isOver ? undefined : await this.#nextItem()
    if (item === undefined) return { done: true, value: undefined }
    if (item.kind === 'event') return { done: false, value: item }
    if (item.kind === 'ending' && item.code === 'REVOKED') this.#connection.onRevoked()
    this.#close()
    return { done: false, value: item }
  }

  /** The client has left. Whoever waits in `next` is let go. */
  async return(): Promise<IteratorResult<Told, undefined>> {
    this.#close()
    return { done: true, value: undefined }
  }

  async throw(error: unknown): Promise<IteratorResult<Told, undefined>> {
    this.#close()
    throw error
  }

  #close(): void {
    this.#isOver = true
    this.#reader.close()
  }

  async #nextItem(): Promise<Told | undefined> {
    try {
      if (this.#reader.ended.aborted) await this.#lookAhead()
      while (this.#at >= this.#items.length) {
        const { done, value } = await this.#batches.next()
        if (this.#isOver || this.#connection.signal.aborted) return undefined
        if (done) return this.#toEnding('STOPPED')
        this.#items = value
        this.#at = 0
      }
      const item = this.#items[this.#at++]!
      return item.kind === 'event' ? item : this.#toEnding(CODES[item.kind], item)
    } catch (error) {
      const fields = { err: summarizeError(error) }
      this.#logRepeatedly('error', 'source', fields, 'a GraphQL subscription was cut off; its client may resume')
      return this.#toEnding('FAILED')
    }
  }

  /** Whoever was revoked gets nothing more of what is at hand. Everybody else gets it before the last word. */
  async #lookAhead(): Promise<void> {
    if (this.#at >= this.#items.length) return
    const { value = [] } = await this.#batches.next()
    const rest = value[0]?.kind === 'revoked' ? [] : this.#items.slice(this.#at)
    this.#items = [...rest, ...value]
    this.#at = 0
  }

  #toEnding(code: Ending['code'], item?: FeedItem): Ending {
    const token = item?.kind === 'lagged' ? item.from : item?.kind === 'resync' ? item.token : this.#reader.token
    return { kind: 'ending', code, message: MESSAGES[code], token: code === 'REVOKED' ? undefined : token }
  }
}

const CODES = { lagged: 'LAGGED', resync: 'RESYNC', revoked: 'REVOKED' } as const

const MESSAGES: Readonly<Record<Ending['code'], string>> = {
  LAGGED: 'Events came faster than they were taken. Subscribe again from the token.',
  RESYNC: 'The place you resumed from means nothing any more. Load what you keep anew, then subscribe from the token.',
  REVOKED: 'What this subscription was authorised by was revoked.',
  STOPPED: 'This server is stopping. Subscribe again from the token.',
  FAILED: 'The subscription could not go on. Subscribe again from the token.',
}
