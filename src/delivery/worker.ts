/**
 * Does what is due: claims in batches, runs, settles in batches. What can happen, failures first:
 *
 *   the lease is lost        everything under way is aborted and nothing is written about it; whoever claims it goes on
 *   an attempt fails         the row waits for its next one; after the last it becomes a dead letter
 *   a worker before died     what it had claimed is taken one at a time, each start written down, so that a delivery which
 *                            ends the process is counted and buried, and nothing else is
 *   a limit, a pause         the row stays where it is and costs no attempt
 *   nothing is due           sleeps until something is, or until the bell rings
 *
 * Only names that are registered here are claimed; the rest is for others.
 */
import { hasMarkedLetters } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import type { Database } from '../postgres/index.ts'
import {
  type Clock,
  createLoop,
  createThrottledLog,
  type Health,
  type Logger,
  type Loop,
  type LoopContext,
  type Registry,
  type Service,
  type ServiceState,
  withTimeout,
} from '../runtime/index.ts'
import type { LeftLane } from '../subscriptions/index.ts'
import { createAttemptCount } from './attempt-count.ts'
import { Claimer, HELD_BACK_MS } from './claimer.ts'
import type { Work } from './delivery.ts'
import type { Destinations } from './destinations.ts'
import { Handlers } from './handlers.ts'
import { type InFlight, shareOf } from './in-flight.ts'
import type { Lanes } from './lanes.ts'
import type { Lease } from './lease.ts'
import { OutcomeWriter, type TakenAlong } from './outcome-writer.ts'
import { bury, fail, type OutcomeParts, succeed } from './outcomes.ts'
import { type Reservation, Reservations } from './reservations.ts'
import { createRotation } from './rotation.ts'
import { Run } from './run.ts'
import { type Claim, type ClaimedRow, hasDue, releaseDeliveries, retryDeliveries, selectHeld } from './statements.ts'
import { Streaks } from './streaks.ts'

export interface WorkerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly lanes: Lanes
  readonly lease: Lease
  readonly destinations: Destinations
  readonly inFlight: InFlight
  readonly storeStacks: boolean
  /** How long `stop` may still wait for what is under way. */
  readonly drainMs: () => number
  /** Whether the bell will ring for new work; if not, it is looked for. */
  readonly willHear: () => boolean
}

export class Worker implements Service {
  readonly name = 'deliveries'
  readonly #options: WorkerOptions
  readonly #loop: Loop
  readonly #writer: OutcomeWriter
  readonly #outcomes: OutcomeParts
  readonly #claimer: Claimer
  readonly #rotation
  readonly #handlers = new Handlers()
  readonly #inFlight: InFlight
  #stopping = false
  /** Rows that came without a claim. Nothing waits behind them, so their end is no reason to look for more. */
  readonly #begun = new WeakSet<Claim>()
  readonly #reservations: Reservations

  constructor(options: WorkerOptions) {
    this.#options = options
    const { database, clock, logger, metrics } = options
    this.#inFlight = options.inFlight
    this.#reservations = new Reservations({ ...options, handlers: this.#handlers })
    this.#claimer = new Claimer({ ...options, wake: () => this.#loop.wake() })
    this.#rotation = createRotation(database.control, clock)
    this.#writer = new OutcomeWriter({
      db: database.control,
      clock,
      logger,
      onLost: (claims) => this.#forget(claims),
      onSettled: (done, failed) => {
        this.#rotation.settled()
        if (done.length > 0) database.commits.work++
        this.#claimer.settled(done.some((claim) => !this.#begun.has(claim)))
        if (failed.length > 0) this.#claimer.lookWithin(Math.min(...failed.map(({ delayMs }) => delayMs)))
      },
    })
    this.#outcomes = {
      database,
      logger,
      logRepeatedly: createThrottledLog({ logger, clock }),
      writer: this.#writer,
      storeStacks: options.storeStacks,
      count: createAttemptCount(metrics),
      isAwaited: (claim) => this.#stopping || !this.#begun.has(claim),
      destinations: options.destinations,
      streaks: new Streaks(),
    }
    this.#inFlight.onFreeForRows = () => this.#startWaiting()
    this.#loop = createLoop({
      name: this.name,
      clock,
      logger,
      metrics,
      health: options.health,
      run: (context) => this.#run(context),
    })
  }

  get state(): ServiceState {
    return this.#loop.state
  }

  /** Nothing is due and nothing is under way, as far as this process could see at its last look. */
  get quiet(): boolean {
    return this.#claimer.isQuiet && this.#isAtRest && this.#writer.unsettled === 0
  }

  get #isAtRest(): boolean {
    return this.#inFlight.running.size + this.#reservations.size === 0
  }

  /**
   * Something is due that waits for a limit or a rest of its destination, or a dead letter is about to become work again: it
   * will be done, and is not done yet.
   */
  async isBehind(): Promise<boolean> {
    const { control } = this.#options.database
    const { names } = this.#claimer
    return (await hasMarkedLetters(control, names)) || (await hasDue(control, names))
  }

  /** Something is registered here. */
  get isAble(): boolean {
    return this.#handlers.size > 0
  }

  register(work: Work): void {
    this.#handlers.add(work)
    this.#renamed()
  }

  unregister(kind: string, name: string): void {
    this.#handlers.remove(kind, name)
    this.#renamed()
  }

  /** There may be something to do. */
  wake(): void {
    this.#claimer.look()
  }

  /** A row was made here. What could not be had now is not looked for now. */
  added({ destination, name }: Pick<LeftLane, 'destination' | 'name'>, delayMs: number): void {
    if (delayMs > 0) this.#claimer.lookWithin(delayMs)
    else if (this.#options.destinations.isResting(destination)) this.#claimer.lookWithin(HELD_BACK_MS)
    else if (this.#inFlight.isCrowded(shareOf(destination, name))) this.#claimer.block()
    else this.#claimer.look()
  }

  /** For first attempts, which have no row. */
  get outcomes(): OutcomeParts {
    return this.#outcomes
  }

  /** A destination is to be left alone: what was claimed for it and not begun would only fail. */
  leaveAlone(destination: string): void {
    const left = this.#inFlight.takeBack(({ delivery }) => delivery.destination === destination)
    if (left.length > 0) void this.#giveBack(left.map(({ claim }) => claim))
  }

  /** For rows that are written as claimed by this worker, with the transaction that asks for them. */
  reserve(kind: string, names: readonly string[]): Reservation | undefined {
    if (this.#stopping || this.state !== 'running') return undefined
    return this.#reservations.make(kind, names, this.#claimer.cancels)
  }

  /** Nothing was written under this token. */
  cancel(token: bigint): void {
    this.#reservations.end(token)
  }

  /** Rows that were written under this token are committed. */
  async begin(worker: string, token: bigint, rows: readonly ClaimedRow[]): Promise<void> {
    const { lease, lanes } = this.#options
    for (const { lane } of rows) if (!lanes.known(lane)) await lanes.get(lane)
    const ours = await this.#claimer.uncancelled(rows, this.#reservations.cancelsBefore(token))
    if (this.#stopping || lease.worker !== worker) await this.#giveBack(ours)
    else {
      for (const row of ours) {
        this.#begun.add(row)
        this.#accept(row)
      }
      this.#startWaiting()
    }
    this.#reservations.end(token)
  }

  /** Rows of ended work that nothing waits for, to be deleted in a transaction that is written anyway. */
  takeAlong(most: number): TakenAlong | undefined {
    return this.#writer.takeAlong(most)
  }

  /** A claim of ours that nobody works on, if there is one. */
  doubt(token: bigint): void {
    this.#reservations.end(token)
    this.#claimer.doubt(token)
  }

  /** The lease is gone, and with it every claim. */
  lose(): void {
    const reason = new AftercommitError(
      'CLAIM_LOST',
      'The lease of this worker was lost; another worker may run its deliveries already.',
    )
    for (const run of this.#inFlight.running) run.lose(reason)
    this.#inFlight.waiting = []
    this.wake()
  }

  /** Rows that are claimed here may have been cancelled: those that do not carry the token of this worker any more are ended. */
  async endCancelled(): Promise<void> {
    this.#claimer.cancelled()
    const { all } = this.#inFlight
    if (all.length === 0) return
    const kept = await selectHeld(
      this.#options.database.control,
      all.map(({ claim }) => claim),
    )
    // A row whose end was written meanwhile is gone because this worker is done with it.
    const gone = all.filter((run) => !kept.has(run.claim.id) && !run.ended && !run.completed && !run.lost)
    for (const run of gone) run.lose(cancelled(run))
    this.#inFlight.takeBack((run) => run.lost)
    if (gone.length > 0) this.#forget(gone.map(({ claim }) => claim))
  }

  start(): Promise<void> {
    this.#stopping = false
    this.#writer.open()
    return this.#loop.start()
  }

  /** Gives back what was not begun, waits for what was; what outlasts the limit is aborted and given back too. */
  async stop(): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    const { clock, drainMs } = this.#options
    await this.#loop.stop()
    this.#claimer.close()
    await this.#release(this.#inFlight.takeBack(() => true))
    const drained = async () => {
      while (!this.#isAtRest) await clock.sleep(5)
      await this.#writer.flush()
    }
    try {
      await withTimeout(drained(), drainMs(), clock, 'Deliveries were still under way')
    } catch (error) {
      await this.#abandon(error)
      throw error
    } finally {
      this.#writer.close()
    }
  }

  /** What was not begun is given back, if the database listens; else it is taken up when the lease has ended. */
  async #release(runs: readonly Run[]): Promise<void> {
    if (runs.length === 0) return
    const claims = runs.map(({ claim }) => claim)
    await releaseDeliveries(this.#options.database.control, claims).catch(() => {})
  }

  async #abandon(error: unknown): Promise<void> {
    const { database, logger } = this.#options
    const left = this.#inFlight.all
    logger.error({ deliveries: left.length }, 'deliveries outlasted the drain limit; their claims are given back')
    for (const run of left) run.lose(error)
    const retries = left.map(({ claim }) => ({ ...claim, delayMs: 0, error: null, counts: true }))
    if (retries.length > 0) await retryDeliveries(database.control, retries).catch(() => {})
  }

  async #run(context: LoopContext): Promise<void> {
    const { lease } = this.#options
    for (;;) {
      context.signal.throwIfAborted()
      const worker = lease.worker
      if (worker === undefined || !this.isAble) {
        this.#claimer.idle(this.isAble)
        await context.wait(1_000)
        continue
      }
      const { rows, restMs } = await this.#claimer.claim(worker, this.#writer.unsettled)
      for (const row of rows) this.#accept(row)
      this.#startWaiting()
      await this.#rotation.turn()
      if (restMs > 0) await context.wait(restMs)
      context.beat()
    }
  }

  /** From here on it is in a place, and is told when its claim is lost. */
  #accept(row: ClaimedRow): void {
    const lane = this.#options.lanes.known(row.lane)!
    const work = this.#handlers.get(lane)
    // Unregistered while the claim was under way.
    if (!work) return void this.#giveBack([row])
    const run = new Run(row, lane, work)
    if (row.suspect && row.attempts > run.work.retry.maxAttempts) this.#bury(run, processEnded(run))
    else this.#inFlight.waiting.push(run)
  }

  /** Begins rows as long as there are places. */
  #startWaiting(): void {
    const inFlight = this.#inFlight
    // A process that stood still past its lease must not begin rows that another worker may have by now.
    if (inFlight.waiting.length === 0 || this.#options.lease.worker === undefined) return
    const paused: Run[] = []
    let next = 0
    while (next < inFlight.waiting.length && inFlight.hasRoomForRow && !this.#stopping) {
      const run = inFlight.waiting[next++]!
      if (this.#options.destinations.isPaused(run.delivery)) paused.push(run)
      else this.#start(run)
    }
    if (next > 0) inFlight.waiting = inFlight.waiting.slice(next)
    if (paused.length > 0) void this.#giveBack(paused.map(({ claim }) => claim))
  }

  #start(run: Run): void {
    const outcomes = this.#outcomes
    outcomes.streaks.get(run.delivery.id)?.begin(outcomes.database.commits)
    let ended: Promise<void> | undefined
    try {
      ended = run.run(this.#inFlight)
    } catch (error) {
      this.#inFlight.begin(run)
      void this.#ended(run, fail(outcomes, run, error))
      return
    }
    if (!ended && !run.row.suspect) {
      this.#claimer.ended()
      succeed(outcomes, run)
      return
    }
    this.#inFlight.begin(run)
    void this.#ended(
      run,
      Promise.resolve(ended).then(
        () => succeed(outcomes, run),
        (error) => fail(outcomes, run, error),
      ),
    )
  }

  /** Not begun again: it has a place until its letter is written. */
  #bury(run: Run, error: unknown): void {
    this.#inFlight.begin(run)
    void this.#ended(run, bury(this.#outcomes, run, error))
  }

  async #ended(run: Run, settled: Promise<void>): Promise<void> {
    const { logger, clock } = this.#options
    await settled.catch((error) => {
      logger.error(
        { err: error, delivery: String(run.claim.id) },
        'what became of a delivery was not written; it is taken up when this process ends',
      )
    })
    // Until its end is written it would be taken for what ended the process, should the next one do that.
    while (run.row.suspect && this.#writer.isUnsettled(run.claim)) await clock.sleep(1)
    this.#inFlight.end(run)
    this.#claimer.ended()
    if (this.#inFlight.waiting.length > 0) this.#startWaiting()
    else this.#claimer.settled(!this.#begun.has(run.row))
    this.#inFlight.serve()
  }

  /** Not begun, so not counted. Where the database does not listen now, the writer says it until it does. */
  #giveBack(claims: readonly Claim[]): Promise<void> {
    return releaseDeliveries(this.#options.database.control, claims).catch(() => {
      for (const claim of claims) this.#writer.failed({ ...claim, delayMs: 0, error: null, counts: false })
    })
  }

  #renamed(): void {
    const { names } = this.#handlers
    this.#claimer.names = names
    this.#options.lease.rename(names)
    this.wake()
  }

  #forget(claims: readonly { id: bigint }[]): void {
    this.#options.logger.warn(
      { deliveries: claims.map(({ id }) => String(id)).slice(0, 20), count: claims.length },
      'claim lost: somebody else has these deliveries or they were cancelled, so nothing was written',
    )
  }
}

function cancelled({ delivery }: Run): AftercommitError {
  return new AftercommitError(
    'CLAIM_LOST',
    `Delivery ${delivery.id} of "${delivery.name}" was cancelled, or another worker has it: what is done now changes nothing.`,
  )
}

function processEnded({ delivery }: Run): AftercommitError {
  return new AftercommitError(
    'PROCESS_DIED',
    `The process ended each time it was at delivery ${delivery.id} of "${delivery.name}", so it is not begun again.`,
  )
}
