/**
 * The wish of this process to be rung. It is worth something once everybody who may have looked for marks before it was
 * there has ended; from then on every commit rings.
 */
import type { Pool } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import { type LogObjects, observe } from './frontier-statements.ts'
import { MARK_SECONDS, removeIdleMark, writeIdleMark } from './wake-statements.ts'

/** So long before it lapses it is taken for lapsed. */
const MARGIN_SECONDS = 5

export class IdleMark {
  readonly #db: Pool
  readonly #clock: Clock
  readonly #process: string
  /** Appenders that may not have seen it. */
  #unseeing = new Set<string>()
  #renewedAt = 0
  #stands = false

  constructor(db: Pool, clock: Clock, process: string) {
    this.#db = db
    this.#clock = clock
    this.#process = process
  }

  /** It was written and not lost since. */
  get stands(): boolean {
    return this.#stands
  }

  /** A process that was paused for longer than its mark counts is no longer rung. */
  get hasLapsed(): boolean {
    return this.#clock.monotonic() - this.#renewedAt > (MARK_SECONDS - MARGIN_SECONDS) * 1_000
  }

  renewed(): void {
    this.#renewedAt = this.#clock.monotonic()
  }

  /** Rings may have been missed: it must be written anew. */
  lost(): void {
    this.#stands = false
  }

  async write(objects: LogObjects): Promise<void> {
    this.#stands = true
    await writeIdleMark(this.#db, this.#process)
    this.renewed()
    // A transaction that has the lock of the sequence now may have looked for marks before ours was there. Steps of workflows
    // without an event take that lock alone, so that readers wait for them here.
    this.#unseeing = new Set((await observe(this.#db, objects)).numberHolders)
  }

  async isSeenByAll(objects: LogObjects): Promise<boolean> {
    if (this.#unseeing.size > 0) {
      const present = new Set((await observe(this.#db, objects)).numberHolders)
      for (const holder of this.#unseeing) if (!present.has(holder)) this.#unseeing.delete(holder)
    }
    return this.#unseeing.size === 0
  }

  async remove(): Promise<void> {
    if (!this.#stands) return
    this.#stands = false
    await removeIdleMark(this.#db, this.#process)
  }
}
