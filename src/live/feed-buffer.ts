/** Items that wait for one client, page by page, and whether they have become too many. */
import type { BufferLimits, FeedItem } from './feed.ts'

/** Items of one page, and how far the page goes. */
interface Chunk {
  readonly items: readonly FeedItem[]
  readonly upTo: bigint
  readonly bytes: number
}

export type Batch = Pick<Chunk, 'items' | 'upTo'>

/** What is handed out at once. */
const BATCH = { items: 500, bytes: 64_000 }

export class FeedBuffer {
  readonly #limits: BufferLimits
  readonly #sizeOf: ((item: FeedItem) => number) | undefined
  #chunks: Chunk[] = []
  #items = 0
  #bytes = 0

  constructor(limits: BufferLimits, sizeOf: ((item: FeedItem) => number) | undefined) {
    this.#limits = limits
    this.#sizeOf = sizeOf
  }

  /** One page is never too much: a client that has taken all before it is not slow, however large the page is. */
  get isTooFull(): boolean {
    if (this.#chunks.length <= 1) return false
    return this.#items > this.#limits.events || this.#bytes > this.#limits.bytes
  }

  /** Gives the bytes that it takes. */
  put(items: readonly FeedItem[], upTo: bigint): number {
    let bytes = 0
    if (this.#sizeOf !== undefined) for (const item of items) bytes += this.#sizeOf(item)
    this.#chunks.push({ items, upTo, bytes })
    this.#items += items.length
    this.#bytes += bytes
    return bytes
  }

  /** What waits, as one batch; the very items of the page when there is one, so that clients share what is made of them. */
  cut(): Batch | undefined {
    const cut: Chunk[] = []
    let items = 0
    let bytes = 0
    while (this.#chunks.length > 0 && items < BATCH.items && bytes < BATCH.bytes) {
      const chunk = this.#chunks.shift()!
      cut.push(chunk)
      items += chunk.items.length
      bytes += chunk.bytes
    }
    this.#items -= items
    this.#bytes -= bytes
    if (cut.length <= 1) return cut[0]
    return { items: cut.flatMap((chunk) => chunk.items), upTo: cut.at(-1)!.upTo }
  }

  drop(): void {
    this.#chunks = []
    this.#items = 0
    this.#bytes = 0
  }
}
