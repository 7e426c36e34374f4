/** Begins what was claimed, as soon as there is a place for it, and hands on how it ended. */
import { type Clock, isThenable, type Logger } from '../runtime/index.ts'
import type { Claimer } from './claimer.ts'
import type { Lease } from './lease.ts'
import { bury, fail, type OutcomeParts, succeed } from './outcomes.ts'
import type { Places } from './places.ts'
import { type Run, withinTime } from './run.ts'
import type { Claim } from './statements.ts'

export interface StarterOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly lease: Lease
  readonly places: Places
  readonly claimer: Claimer
  readonly outcomes: OutcomeParts
  readonly isStopping: () => boolean
  /** Whether something may wait for the end of this one. */
  readonly isFollowed: (claim: Claim) => boolean
  readonly giveBack: (claims: readonly Claim[]) => Promise<void>
}

export class Starter {
  readonly #options: StarterOptions

  constructor(options: StarterOptions) {
    this.#options = options
  }

  startWaiting(): void {
    const { lease, places, isStopping, giveBack } = this.#options
    // A process that stood still past its lease must not begin what somebody else may have by now.
    if (places.waiting.length === 0 || lease.worker === undefined) return
    const paused: Run[] = []
    let next = 0
    while (next < places.waiting.length && !places.isFull && !isStopping()) {
      const run = places.waiting[next++]!
      if (lease.isPaused(run.work.kind, run.work.name, run.delivery.destination)) paused.push(run)
      else this.#start(run)
    }
    if (next > 0) places.waiting = places.waiting.slice(next)
    if (paused.length > 0) void giveBack(paused.map(({ claim }) => claim))
  }

  /** Not begun again: it has a place until its letter is written. */
  bury(run: Run, error: unknown): void {
    this.#options.places.running.add(run)
    void this.#ended(run, bury(this.#options.outcomes, run, error))
  }

  #start(run: Run): void {
    const { clock, places, claimer, outcomes } = this.#options
    run.startedMs = clock.monotonic()
    outcomes.streaks.get(run.delivery.id)?.begin(outcomes.database.commits)
    let result: unknown
    try {
      result = run.work.run(run.delivery, run)
    } catch (error) {
      places.running.add(run)
      void this.#ended(run, fail(outcomes, run, error))
      return
    }
    if (!isThenable(result) && !run.row.suspect) {
      claimer.ended()
      succeed(outcomes, run)
      return
    }
    places.running.add(run)
    void this.#ended(
      run,
      withinTime(Promise.resolve(result), run, clock).then(
        () => succeed(outcomes, run),
        (error) => fail(outcomes, run, error),
      ),
    )
  }

  async #ended(run: Run, settled: Promise<void>): Promise<void> {
    const { logger, clock, places, claimer, outcomes, isFollowed } = this.#options
    await settled.catch((error) => {
      logger.error(
        { err: error, delivery: String(run.claim.id) },
        'what became of a delivery was not written; it is taken up when this process ends',
      )
    })
    // Until its end is written it would be taken for what ended the process, should the next one do that.
    while (run.row.suspect && outcomes.settler.isUnsettled(run.claim)) await clock.sleep(1)
    places.running.delete(run)
    claimer.ended()
    if (places.waiting.length > 0) this.startWaiting()
    else claimer.settled(isFollowed(run.row))
    places.shared.onFreeForFirst()
  }
}
