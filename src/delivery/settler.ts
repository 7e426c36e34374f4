/**
 * Writes down what became of claimed work, many in one statement: while one write is under way, what ends meanwhile
 * waits for the next. A write that fails is tried again until it succeeds, or until this is closed: without it the work
 * will be done twice.
 */
import type { Queryable } from '../postgres/index.ts'
import { type Clock, type Logger, reconnectDelay } from '../runtime/index.ts'
import { type Claim, completeDeliveries, type Retry, retryDeliveries } from './statements.ts'

export interface SettlerOptions {
  readonly db: Queryable
  readonly clock: Clock
  readonly logger: Logger
  /** Rows that were somebody else's by then: nothing was changed. */
  readonly onLost: (claims: readonly Claim[]) => void
  /** Something was written, so there is room again. */
  readonly onSettled: (done: readonly Claim[], failed: readonly Retry[]) => void
}

const MOST_AT_ONCE = 1_000

export class Settler {
  readonly #options: SettlerOptions
  #done: Claim[] = []
  #failed: Retry[] = []
  #writing: Promise<void> | undefined
  #underway = 0
  #closed = false

  constructor(options: SettlerOptions) {
    this.#options = options
  }

  /** How many ended and are not written yet. */
  get unsettled(): number {
    return this.#done.length + this.#failed.length + this.#underway
  }

  done(claim: Claim): void {
    this.#done.push(claim)
    this.#writing ??= this.#write()
  }

  failed(retry: Retry): void {
    this.#failed.push(retry)
    this.#writing ??= this.#write()
  }

  /** Resolves when everything that has ended is written. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  open(): void {
    this.#closed = false
  }

  /** The process ends: what the database does not take now is left to whoever takes up the claims. */
  close(): void {
    this.#closed = true
  }

  async #write(): Promise<void> {
    // One turn of the event loop: what ends together is written together.
    await new Promise(setImmediate)
    while (this.#done.length > 0 || this.#failed.length > 0) {
      const done = this.#done.splice(0, MOST_AT_ONCE)
      const failed = this.#failed.splice(0, MOST_AT_ONCE)
      this.#underway = done.length + failed.length
      if (done.length > 0) await this.#persist(done, (db) => completeDeliveries(db, done))
      if (failed.length > 0) await this.#persist(failed, (db) => retryDeliveries(db, failed))
      this.#underway = 0
      this.#options.onSettled(done, failed)
    }
    this.#writing = undefined
  }

  async #persist(claims: readonly Claim[], write: (db: Queryable) => Promise<Set<bigint>>): Promise<void> {
    const { db, clock, logger, onLost } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        const settled = await write(db)
        // After an answer that got lost, rows of an earlier write are gone: they only look like somebody else's.
        if (settled.size < claims.length && attempt === 1) onLost(claims.filter(({ id }) => !settled.has(id)))
        return
      } catch (error) {
        if (this.#closed) return
        logger.warn(
          { err: error, deliveries: claims.length, attempt },
          'what became of deliveries was not written; it is tried again',
        )
        await clock.sleep(reconnectDelay(attempt))
      }
    }
  }
}
