/**
 * One client of an event stream, from the first byte to the last:
 *
 *   slow        it is not written to until it has taken what was written; the reader says when it has lagged too far
 *   ended       a last frame says why, if there is something to say; whoever does not take that in time is cut off
 *   quiet       a comment shows that the connection lives, with the token that the client may resume after
 */
import type { Clock } from '../runtime/index.ts'
import type { FeedReader } from './feed.ts'
import { closingFrame, type Frames, openingFrame, placeFrame } from './sse-frames.ts'

/** Where frames go: a response of Node, or a web stream. */
export interface SseSink {
  /** False when the client has not taken what was written before. */
  write(bytes: Uint8Array): boolean
  readonly isFull: boolean
  /** Resolves when there is room, the client has gone, or the signal fires. */
  drained(signal: AbortSignal): Promise<void>
  end(): void
  destroy(): void
  /** Fires when the client has gone, or has got everything. */
  readonly gone: AbortSignal
}

/** For the last frame of a client that does not read. */
const GRACE_MS = 3_000

export class SseConnection {
  readonly #sink: SseSink
  readonly #reader: FeedReader
  #isQuiet = true

  constructor(sink: SseSink, reader: FeedReader) {
    this.#sink = sink
    this.#reader = reader
  }

  /** Resolves when the last byte was written. Throws what the reader throws, with the stream ended all the same. */
  async serve(frames: Frames, principal: unknown): Promise<void> {
    const { ended } = this.#reader
    this.#write(openingFrame())
    try {
      for await (const items of this.#reader) {
        const bytes = items.length === 0 ? placeFrame(this.#reader.token) : frames.encode(items, principal)
        if (!this.#write(bytes)) await this.#sink.drained(ended)
      }
    } finally {
      this.#write(closingFrame(this.#reader.token))
      this.#sink.end()
    }
  }

  /** Called every heartbeat. */
  beat(): void {
    if (this.#isQuiet && !this.#sink.isFull && !this.#reader.ended.aborted)
      this.#sink.write(placeFrame(this.#reader.token))
    this.#isQuiet = true
  }

  /** Waits until the client has got everything, but not for ever. */
  async close(clock: Clock): Promise<void> {
    const { gone } = this.#sink
    if (gone.aborted) return
    await clock.sleep(GRACE_MS, gone).then(
      () => this.#sink.destroy(),
      () => {},
    )
  }

  #write(bytes: Uint8Array): boolean {
    if (this.#sink.gone.aborted) return true
    if (bytes.length === 0) return !this.#sink.isFull
    this.#isQuiet = false
    return this.#sink.write(bytes)
  }
}
