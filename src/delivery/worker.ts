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
import { AftercommitError } from '../errors.ts'
import type { Database } from '../postgres/index.ts'
import {
  type Clock,
  createLoop,
  type Health,
  type Logger,
  type Loop,
  type LoopContext,
  type Registry,
  type Service,
  type ServiceState,
  withTimeout,
} from '../runtime/index.ts'
import { createAttemptCount } from './attempt-count.ts'
import { Claimer, HELD_BACK_MS, mostPerDestination } from './claimer.ts'
import type { Work } from './delivery.ts'
import type { Lanes } from './lanes.ts'
import type { Lease } from './lease.ts'
import type { OutcomeParts } from './outcomes.ts'
import { Places } from './places.ts'
import { createRotation } from './rotation.ts'
import { Run } from './run.ts'
import { Settler, type TakenAlong } from './settler.ts'
import { Starter } from './starter.ts'
import { type Claim, type ClaimedRow, hasDue, releaseDeliveries, retryDeliveries, selectHeld } from './statements.ts'
import { newToken } from './token.ts'
import type { Trouble } from './trouble.ts'
import { Works } from './works.ts'

export interface WorkerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly lanes: Lanes
  readonly lease: Lease
  readonly trouble: Trouble
  readonly storeStacks: boolean
  /** How many at a time. */
  readonly concurrency: number
  /** How long `stop` may still wait for what is under way. */
  readonly drainMs: () => number
  /** Whether the bell will ring for new work; if not, it is looked for. */
  readonly willHear: () => boolean
}

/** Under which worker, and with which token, rows are written as claimed. */
export interface Reservation {
  readonly worker: string
  readonly token: bigint
}

export class Worker implements Service {
  readonly name = 'deliveries'
  readonly #options: WorkerOptions
  readonly #loop: Loop
  readonly #settler: Settler
  readonly #outcomes: OutcomeParts
  readonly #claimer: Claimer
  readonly #rotation
  readonly #starter: Starter
  readonly #works = new Works()
  readonly #places: Places
  #stopping = false
  /** Rows that came without a claim. Nothing waits behind them, so their end is no reason to look for more. */
  readonly #begun = new WeakSet<Claim>()
  /** Places kept for rows that are about to be committed, by their token. */
  readonly #reserved = new Map<bigint, number>()

  constructor(options: WorkerOptions) {
    this.#options = options
    const { database, clock, logger, metrics } = options
    this.#places = new Places(options.concurrency)
    this.#claimer = new Claimer({ ...options, places: this.#places, wake: () => this.#loop.wake() })
    this.#rotation = createRotation(database.control, clock)
    this.#settler = new Settler({
      db: database.control,
      clock,
      logger,
      onLost: (claims) => this.#forget(claims),
      onSettled: (done, failed) => {
        this.#rotation.settled()
        this.#claimer.settled(done.some((claim) => !this.#begun.has(claim)))
        if (failed.length > 0) this.#claimer.lookWithin(Math.min(...failed.map(({ delayMs }) => delayMs)))
      },
    })
    this.#outcomes = {
      database,
      logger,
      settler: this.#settler,
      storeStacks: options.storeStacks,
      count: createAttemptCount(metrics),
      isAwaited: (claim) => this.#stopping || !this.#begun.has(claim),
      trouble: options.trouble,
    }
    this.#starter = new Starter({
      ...options,
      places: this.#places,
      claimer: this.#claimer,
      outcomes: this.#outcomes,
      isStopping: () => this.#stopping,
      isFollowed: (claim) => !this.#begun.has(claim),
      giveBack: (claims) => this.#giveBack(claims),
    })
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
    return this.#claimer.isQuiet && this.#isAtRest && this.#settler.unsettled === 0
  }

  get #isAtRest(): boolean {
    return this.#places.running.size + this.#places.held.size + this.#reserved.size === 0
  }

  /** Something that is due waits for a limit or a rest of its destination: it will be done, and is not done yet. */
  isBehind(): Promise<boolean> {
    return hasDue(this.#options.database.control, this.#claimer.names)
  }

  /** Something is registered here. */
  get isAble(): boolean {
    return this.#works.size > 0
  }

  register(work: Work): void {
    this.#works.add(work)
    this.#renamed()
  }

  unregister(kind: string, name: string): void {
    this.#works.remove(kind, name)
    this.#renamed()
  }

  /** There may be something to do. */
  wake(): void {
    this.#claimer.look()
  }

  /** A row was made here. What could not be had now is not looked for now. */
  added(destination: string, delayMs: number): void {
    const { trouble, concurrency } = this.#options
    if (delayMs > 0) this.#claimer.lookWithin(delayMs)
    else if (trouble.isResting(destination)) this.#claimer.lookWithin(HELD_BACK_MS)
    else if (this.#places.isCrowded(destination, mostPerDestination(concurrency))) this.#claimer.block()
    else this.#claimer.look()
  }

  /** For attempts that began without a row. */
  get outcomes(): OutcomeParts {
    return this.#outcomes
  }

  /** A destination is to be left alone: what was claimed for it and not begun would only fail. */
  leaveAlone(destination: string): void {
    const left = this.#places.take(({ delivery }) => delivery.destination === destination)
    if (left.length > 0) void this.#giveBack(left.map(({ claim }) => claim))
  }

  /**
   * For rows that are written as claimed by this worker, with the transaction that asks for them: whoever asks does them at
   * once. Undefined where they could not begin now. What was committed is begun, of what may have been the token is doubted,
   * and of what was not it is cancelled: until then their places are kept.
   */
  reserve(kind: string, names: readonly string[]): Reservation | undefined {
    const { lease } = this.#options
    if (this.#stopping || this.state !== 'running' || names.length > this.#freePlaces) return undefined
    const isMine = (name: string) => this.#works.get({ kind, name }) !== undefined && !lease.isPaused(kind, name, '')
    const worker = lease.worker
    if (worker === undefined || !names.every(isMine)) return undefined
    const token = newToken()
    this.#reserved.set(token, names.length)
    return { worker, token }
  }

  get #freePlaces(): number {
    let free = this.#places.free
    for (const count of this.#reserved.values()) free -= count
    return free
  }

  /** Nothing was written under this token. */
  cancel(token: bigint): void {
    this.#reserved.delete(token)
  }

  async begin(worker: string, rows: readonly ClaimedRow[]): Promise<void> {
    const { lease, lanes } = this.#options
    for (const { lane } of rows) if (!lanes.known(lane)) await lanes.get(lane)
    if (this.#stopping || lease.worker !== worker) await this.#giveBack(rows)
    else {
      for (const row of rows) {
        this.#begun.add(row)
        this.#accept(row)
      }
      this.#starter.startWaiting()
    }
    for (const { token } of rows) this.#reserved.delete(token)
  }

  /** Rows of ended work that nothing waits for, to be deleted in a transaction that is written anyway. */
  takeAlong(most: number): TakenAlong | undefined {
    return this.#settler.takeAlong(most)
  }

  /** A claim of ours that nobody works on, if there is one. */
  doubt(token: bigint): void {
    this.#reserved.delete(token)
    this.#claimer.doubt(token)
  }

  /** The lease is gone, and with it every claim. */
  lose(): void {
    const reason = new AftercommitError(
      'CLAIM_LOST',
      'The lease of this worker was lost; somebody else may be at it already.',
    )
    for (const run of [...this.#places.running, ...this.#places.held]) {
      run.lost = true
      run.abort(reason)
    }
    this.#places.waiting = []
    this.wake()
  }

  /** Told like any other when its claim is lost. Call what it returns when it has ended. */
  hold(run: Run): () => void {
    this.#places.held.add(run)
    return () => this.#places.held.delete(run)
  }

  /** Somebody may have cancelled what is held here: whatever does not carry our token any more is ended. */
  async endCancelled(): Promise<void> {
    const held = this.#places.all
    if (held.length === 0) return
    const kept = await selectHeld(
      this.#options.database.control,
      held.map(({ claim }) => claim),
    )
    // What ended meanwhile is not cancelled: its row is gone because we are done with it.
    const gone = held.filter((run) => !kept.has(run.claim.id) && !run.ended && !run.completed && !run.lost)
    if (gone.length === 0) return
    for (const run of gone) {
      run.lost = true
      run.abort(cancelled(run))
    }
    this.#places.take((run) => run.lost)
    this.#forget(gone.map(({ claim }) => claim))
  }

  start(): Promise<void> {
    this.#stopping = false
    this.#settler.open()
    return this.#loop.start()
  }

  /** Gives back what was not begun, waits for what was; what outlasts the limit is aborted and given back too. */
  async stop(): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    const { clock, drainMs } = this.#options
    await this.#loop.stop()
    this.#claimer.close()
    await this.#release(this.#places.take(() => true))
    const drained = async () => {
      while (!this.#isAtRest) await clock.sleep(5)
      await this.#settler.flush()
    }
    try {
      await withTimeout(drained(), drainMs(), clock, 'Deliveries were still under way')
    } catch (error) {
      await this.#abandon(error)
      throw error
    } finally {
      this.#settler.close()
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
    const left = this.#places.all
    logger.error({ deliveries: left.length }, 'deliveries outlasted the drain limit; their claims are given back')
    for (const run of left) {
      run.lost = true
      run.abort(error)
    }
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
      const { rows, restMs } = await this.#claimer.claim(worker, this.#settler.unsettled)
      for (const row of rows) this.#accept(row)
      this.#starter.startWaiting()
      await this.#rotation.turn()
      if (restMs > 0) await context.wait(restMs)
      context.beat()
    }
  }

  /** From here on it is in a place, and is told when its claim is lost. */
  #accept(row: ClaimedRow): void {
    const lane = this.#options.lanes.known(row.lane)!
    const work = this.#works.get(lane)
    // Unregistered while the claim was under way.
    if (!work) return void this.#giveBack([row])
    const run = new Run(row, lane, work)
    if (row.suspect && row.attempts > run.work.retry.maxAttempts) this.#starter.bury(run, processEnded(run))
    else this.#places.waiting.push(run)
  }

  /** Not begun, so not counted. Where the database does not listen now, the settler says it until it does. */
  #giveBack(claims: readonly Claim[]): Promise<void> {
    return releaseDeliveries(this.#options.database.control, claims).catch(() => {
      for (const claim of claims) this.#settler.failed({ ...claim, delayMs: 0, error: null, counts: false })
    })
  }

  #renamed(): void {
    const { names } = this.#works
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

function processEnded({ delivery }: Run): AftercommitError {
  return new AftercommitError(
    'PROCESS_DIED',
    `The process ended each time it was at delivery ${delivery.id} of "${delivery.name}", so it is not begun again.`,
  )
}

function cancelled({ delivery }: Run): AftercommitError {
  return new AftercommitError(
    'CLAIM_LOST',
    `Delivery ${delivery.id} of "${delivery.name}" was cancelled, or somebody else has it: what is done now changes nothing.`,
  )
}
