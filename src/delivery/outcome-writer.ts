/**
 * Writes the outcomes of claimed rows, many in one statement: outcomes that come while a write is under way go with the
 * next. Rows that nothing waits for linger a moment, so that a transaction which is written anyway may delete them. A write
 * that fails is repeated until it succeeds or the writer is closed: without it the work is done twice.
 */
import type { Queryable } from '../postgres/index.ts'
import { type Clock, type Logger, reconnectDelay } from '../runtime/index.ts'
import { type Claim, completeDeliveries, type Retry, retryDeliveries } from './statements.ts'

export interface OutcomeWriterOptions {
  readonly db: Queryable
  readonly clock: Clock
  readonly logger: Logger
  /** Rows that were somebody else's by then: nothing was changed. */
  readonly onLost: (claims: readonly Claim[]) => void
  /** Something was written, so there is room again. */
  readonly onSettled: (done: readonly Claim[], failed: readonly Retry[]) => void
}

const MOST_AT_ONCE = 1_000
const LINGER_MS = 20

/** Ended work whose rows somebody deletes in a transaction of their own. One of the two is to be called. */
export interface TakenAlong {
  readonly claims: readonly Claim[]
  /** Committed; these were deleted. */
  settled(ids: ReadonlySet<bigint>): void
  /** Not committed; `isUnknown`: or nobody knows. */
  givenBack(isUnknown: boolean): void
}

export class OutcomeWriter {
  readonly #options: OutcomeWriterOptions
  #done: Claim[] = []
  /** Done too, and nothing waits for it. */
  #lingering: Claim[] = []
  #stopLingering = () => {}
  /** Rows that may be gone already, by a write of ours whose answer was lost: they only look like somebody else's. */
  readonly #doubtful = new WeakSet<Claim>()
  #failed: Retry[] = []
  #writing: Promise<void> | undefined
  #underway: readonly Claim[] = []
  #takenAlong = 0
  #closed = false

  constructor(options: OutcomeWriterOptions) {
    this.#options = options
  }

  /** How many ended and are not written yet. */
  get unsettled(): number {
    return this.#done.length + this.#lingering.length + this.#failed.length + this.#underway.length + this.#takenAlong
  }

  done(claim: Claim): void {
    this.#done.push(claim)
    this.#writing ??= this.#write()
  }

  /** Done, and nothing waits for its row to go. */
  linger(claim: Claim): void {
    this.#lingering.push(claim)
    if (this.#lingering.length === 1) this.#stopLingering = this.#options.clock.setTimer(LINGER_MS, () => this.#hurry())
  }

  /** What lingers, for a transaction that is about to be written. */
  takeAlong(most: number): TakenAlong | undefined {
    if (this.#lingering.length === 0) return undefined
    const claims = this.#lingering.splice(0, most)
    if (this.#lingering.length === 0) this.#stopLingering()
    this.#takenAlong += claims.length
    return {
      claims,
      settled: (ids) => {
        this.#takenAlong -= claims.length
        const lost = claims.filter(({ id }) => !ids.has(id))
        if (lost.length > 0) this.#options.onLost(lost)
        this.#options.onSettled(claims, [])
      },
      givenBack: (isUnknown) => {
        this.#takenAlong -= claims.length
        for (const claim of claims) {
          if (isUnknown) this.#doubtful.add(claim)
          this.done(claim)
        }
      },
    }
  }

  #hurry(): void {
    this.#stopLingering()
    for (const claim of this.#lingering.splice(0)) this.done(claim)
  }

  failed(retry: Retry): void {
    this.#failed.push(retry)
    this.#writing ??= this.#write()
  }

  /** It ended and that is not written yet. */
  isUnsettled({ id }: Claim): boolean {
    return [this.#done, this.#failed, this.#underway].some((claims) => claims.some((claim) => claim.id === id))
  }

  /** Resolves when everything that has ended is written. */
  async flush(): Promise<void> {
    this.#hurry()
    while (this.#writing || this.#takenAlong > 0) await (this.#writing ?? this.#options.clock.sleep(1))
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
      this.#underway = [...done, ...failed]
      if (done.length > 0) await this.#persist(done, (db) => completeDeliveries(db, done))
      if (failed.length > 0) await this.#persist(failed, (db) => retryDeliveries(db, failed))
      this.#underway = []
      this.#options.onSettled(done, failed)
    }
    this.#writing = undefined
  }

  async #persist(claims: readonly Claim[], write: (db: Queryable) => Promise<Set<bigint>>): Promise<void> {
    const { db, clock, logger, onLost } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        const settled = await write(db)
        const lost = claims.filter((claim) => !settled.has(claim.id) && !this.#doubtful.has(claim))
        if (lost.length > 0) onLost(lost)
        return
      } catch (error) {
        if (this.#closed) return
        for (const claim of claims) this.#doubtful.add(claim)
        logger.warn(
          { err: error, deliveries: claims.length, attempt },
          'what became of deliveries was not written; it is tried again',
        )
        await clock.sleep(reconnectDelay(attempt))
      }
    }
  }
}
