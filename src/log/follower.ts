/**
 * One reader that follows the log of this process. The reader keeps its position; the follower knows in which epoch that
 * position is and how far one read goes. What can happen, failures first:
 *
 *   the log enters another epoch   `hasLostPlace` until the reader has decided where to go on and calls `enterEpoch`
 *   it does so during a read       no page: its events may not be part of history any more
 *   a read takes too long          no page, and the next read covers a narrower window
 *   nothing above the position     `idle` ends when there is
 */
import { afterFailure, FIRST_WINDOW } from './read-window.ts'
import type { Page, PageFilter, Tailer } from './tailer.ts'

/** The part of the tailer that a reader needs. */
export type FollowedLog = Pick<Tailer, 'epoch' | 'frontier' | 'readFiltered' | 'waitBeyond'>

export type FollowerFilter = Omit<PageFilter, 'window' | 'reader'>

export class Follower {
  readonly #log: FollowedLog
  readonly #filter: FollowerFilter
  #epoch: number
  #window = FIRST_WINDOW
  /** The lowest position above which news are awaited. */
  #awaited: bigint | undefined
  #wake = () => {}
  readonly #never = new AbortController().signal

  /** Pages that come from memory are not filtered: the reader looks at each event once more. */
  constructor(log: FollowedLog, filter: FollowerFilter = {}) {
    this.#log = log
    this.#filter = filter
    this.#epoch = log.epoch
  }

  /** The epoch that the position of the reader is in. */
  get epoch(): number {
    return this.#epoch
  }

  /** The log is in another epoch. While its epoch is unknown, the place counts. */
  get hasLostPlace(): boolean {
    return this.#log.epoch !== this.#epoch && this.#log.epoch !== 0
  }

  /** From now on the position of the reader is in this epoch. */
  enterEpoch(epoch = this.#log.epoch): void {
    this.#epoch = epoch
  }

  hasMore(after: bigint): boolean {
    return this.#log.frontier > after
  }

  /** Final events above a position, in order. Shared with other readers. Undefined: look at the place, then read again. */
  async read(after: bigint, limit: number): Promise<Page | undefined> {
    const epoch = this.#epoch
    try {
      const page = await this.#log.readFiltered(after, limit, { ...this.#filter, window: this.#window, reader: this })
      this.#window = page.window
      return this.#log.epoch === epoch && this.#epoch === epoch ? page : undefined
    } catch (error) {
      const narrower = afterFailure(this.#window, error)
      if (narrower === undefined) throw error
      this.#window = narrower
      return undefined
    }
  }

  /**
   * Idles until there is something above a position: then `wake` is called, which ends what `wait` waits for. It may be called
   * once more later, for a position that the reader has passed. Under load a reader idles after every call, so one wait for
   * news serves many.
   */
  async idle(after: bigint, { wake, wait }: { wake(): void; wait(): Promise<unknown> }): Promise<void> {
    this.#wake = wake
    if (this.#awaited === undefined || after < this.#awaited) {
      this.#awaited = after
      void this.#log.waitBeyond(after, this.#never).then(() => {
        if (this.#awaited === after) this.#awaited = undefined
        this.#wake()
      })
    }
    await wait()
  }
}
