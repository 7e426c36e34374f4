/**
 * Runs one subscription while this process owns it. What can happen, failures first:
 *
 *   the lease is lost        calls are aborted, nothing more is written; whoever has it now goes on from the checkpoint
 *   the handler fails        its key waits for the next try; after the last one the event becomes a letter (park, skip)
 *                            or the subscription stops
 *   it fails for key after key   the handler is broken: `failing` keeps the checkpoint and tries the head until it succeeds
 *   the owner before died    what it may have begun is run again. After a second death at the same position it is run one by
 *                            one, each try written down before it begins, so that an event which ends the process is counted
 *                            and parked
 *   history forked or went   it stops and says so, rather than go on from a place that is no longer there
 *   a letter was marked      it is redriven, then what waits behind it, in order; then its key is free
 *   nothing to do            waits for the tailer, a due try or a nudge
 */
import { selectParkedKeys } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import { type AnyEvent, Follower } from '../log/index.ts'
import { classify } from '../postgres/index.ts'
import { createInTurn, createThrottledLog, createWaker } from '../runtime/index.ts'
import { runBatch } from './batches.ts'
import { createCheckpointWriter } from './checkpoint-writer.ts'
import { type Definition, WINDOW } from './definition.ts'
import type { CallContext } from './handler-call.ts'
import { type Item, Lanes, toItem } from './lanes.ts'
import type { Lease, Release } from './lease-statements.ts'
import { park } from './outcomes.ts'
import { Pages } from './pages.ts'
import { type Checkpoint, Progress } from './progress.ts'
import { redriveMarked } from './redrive.ts'
import type { RunEnd, RunParts, RunState } from './run-state.ts'
import { Saver } from './saver.ts'
import { saveStatus } from './statements.ts'
import { tryEvent } from './tries.ts'

/** After so many events that were done with at once, others in this process get a turn: a stop, or a checkpoint. */
const TURN = 10
/** A process that stood still for longer hears first what happened meanwhile: its session may be gone. */
const STOOD_STILL_MS = 500

export class Runner implements RunState {
  readonly definition: Definition
  readonly lease: Lease
  readonly parts: RunParts
  readonly progress: Progress
  readonly lanes = new Lanes()
  readonly writer
  readonly saver: Saver
  readonly parkedKeys = new Set<string>()
  readonly calls = new Set<CallContext>()
  careful: number
  streak: string[] = []
  failing: boolean
  handled = 0
  showsReason: boolean
  outages = 0
  readonly logRepeatedly
  readonly #waker
  readonly #stopping = new AbortController()
  readonly #follower: Follower
  #running = 0
  /** When the last event was begun. */
  #begunMs = 0
  readonly #inTurn = createInTurn()
  #end: RunEnd | undefined
  #failed = false
  readonly #pages: Pages
  #marked = true
  #heldUntilMs = 0
  /** Events of a batch that have not begun because everything waited for something: the next batch. */
  #left: readonly Item[] = []

  constructor(definition: Definition, lease: Lease, parts: RunParts) {
    this.definition = definition
    this.lease = lease
    this.parts = parts
    // After one death all that may have begun runs again together; only a second one makes an event of it the suspect.
    this.careful = lease.deaths > 1 ? WINDOW : 0
    this.failing = lease.failing
    this.showsReason = lease.reason !== null
    this.logRepeatedly = createThrottledLog({ logger: parts.logger, clock: parts.clock })
    this.progress = new Progress(lease.position, lease.done)
    this.#waker = createWaker(parts.clock)
    this.#follower = new Follower(parts.tailer, { type: definition.typeExpression, tenant: definition.tenant })
    this.#pages = new Pages({ follower: this.#follower, limit: parts.limit })
    this.saver = new Saver({
      db: parts.database.control,
      lease,
      progress: this.progress,
      logger: parts.logger,
      onLost: () => this.end('lost'),
      onSaved: ({ checkpoint }) => this.#saved(checkpoint),
    })
    this.writer = createCheckpointWriter({
      mode: definition.checkpoint,
      clock: parts.clock,
      save: () => this.exclusively(() => this.saver.save()),
      onError: (error) =>
        parts.logger.warn({ subscription: definition.id, err: error }, 'checkpoint not written; it is tried again'),
    })
  }

  /** Everything at or below was read, and nothing of it is under way. */
  get settledAt(): bigint {
    const idle = this.progress.held === 0 && !this.lanes.busy
    return idle ? this.progress.scanned : this.progress.checkpoint().position
  }

  get ending(): boolean {
    return this.#stopping.signal.aborted
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  get lost(): boolean {
    return this.#end === 'lost'
  }

  end(why: RunEnd): void {
    // Whatever it was about to end for: without the lease nothing may be written.
    this.#end = why === 'lost' ? why : (this.#end ?? why)
    if (why === 'lost') {
      const reason = leaseLost(this.definition.id)
      for (const call of this.calls) call.abort(reason)
    }
    this.#stopping.abort()
    this.#waker.wake()
  }

  get isHeld(): boolean {
    return this.#heldUntilMs > this.parts.clock.monotonic()
  }

  hold(delayMs: number): void {
    this.#heldUntilMs = this.parts.clock.monotonic() + delayMs
  }

  nudge(): void {
    this.#marked = true
    this.#waker.wake()
  }

  wake(): void {
    this.#waker.wake()
  }

  exclusively<T>(write: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      if (this.lost) throw leaseLost(this.definition.id)
      await this.saver.settle()
      return write()
    })
  }

  once<T>(write: () => Promise<T>): Promise<T> {
    return this.exclusively(async () => {
      try {
        return await write()
      } catch (error) {
        this.end('lost')
        throw error
      }
    })
  }

  /** Runs until it is ended. */
  async run(): Promise<Release & { readonly end: RunEnd }> {
    const { database, logger, tailer, metrics } = this.parts
    const subscription = this.definition.id
    const obstacle = this.#obstacle()
    if (obstacle !== undefined) {
      await saveStatus(database.control, this.lease, 'stopped', obstacle)
      logger.error({ subscription }, `subscription stopped: ${obstacle}`)
      return { end: 'halted', clean: true }
    }
    await this.definition.begin?.(this.#stopping.signal)
    for (const key of await selectParkedKeys(database.control, subscription)) this.parkedKeys.add(key)
    logger.info(
      { subscription, position: String(this.lease.position), term: String(this.lease.term) },
      'lease acquired',
    )
    const target = tailer.frontier
    let catchingUp = target > this.lease.position ? metrics.catchUp() : undefined
    if (catchingUp) logger.info({ subscription, behind: String(target - this.lease.position) }, 'catch-up started')
    try {
      while (!this.#stopping.signal.aborted) {
        const worked = await this.#round()
        if (catchingUp && this.settledAt >= target) {
          catchingUp(this.handled)
          catchingUp = undefined
          logger.info({ subscription, events: this.handled }, 'catch-up completed')
        }
        if (!worked) await this.#rest()
      }
    } catch (error) {
      this.end('lost')
      throw error
    } finally {
      // Whoever runs this next must not find the calls of this run beside its own.
      while (this.#running > 0) await this.#waker.wait(1_000)
      this.writer.close()
    }
    const clean = !this.lost && (await this.#flush())
    return { end: this.#end ?? 'stopped', clean, failed: this.#failed }
  }

  /** Why this must not run from its checkpoint, if so. */
  #obstacle(): string | undefined {
    const { position, keptFrom, forkedAt } = this.lease
    if (forkedAt !== null && position > forkedAt) {
      return `history forked after position ${forkedAt} and this had come to ${position}; seek to go on`
    }
    if (keptFrom <= position + 1n) return undefined
    return `history lost: events ${position + 1n} to ${keptFrom - 1n} were dropped before they were handled; seek to go on`
  }

  /** One turn: what is due, what was marked, what is new. False when there is nothing to do. */
  async #round(): Promise<boolean> {
    const { clock, database } = this.parts
    if (!this.parts.mayRun()) return false
    // Another epoch: whether the checkpoint still means something is looked at when the lease is taken again.
    if (this.#follower.hasLostPlace) this.end('lost')
    if (this.isHeld) return false
    this.#heldUntilMs = 0
    const due = this.lanes.next(clock.monotonic())
    if (due && this.#running < this.definition.concurrency) {
      await this.#start(due)
      return true
    }
    if (this.#marked) {
      this.#marked = false
      if (await redriveMarked(database.control, this.lease, this.parkedKeys, this.lanes)) return true
    }
    if (this.#mustWait()) return false
    const hasNone = this.#pages.isUsedUp && this.#left.length === 0
    if (hasNone && !(await this.#pages.turn(this.progress.scanned))) return false
    await this.#takePage()
    return true
  }

  /** Nothing new is begun while the window is full, all lanes are busy, or everything waits for the head. */
  #mustWait(): boolean {
    const { concurrency, onFailure, mostUnsaved } = this.definition
    const held = this.progress.held - this.#left.length
    if (this.isHeld || this.#running >= concurrency || held >= WINDOW || held + this.saver.unsaved >= mostUnsaved)
      return true
    return (onFailure === 'stop' || this.failing) && this.lanes.busy
  }

  /** Takes events of the page until it is used up or something must be waited for. */
  async #takePage(): Promise<void> {
    const pages = this.#pages
    if (this.definition.handleBatch) await this.#takeBatch()
    else {
      while (!pages.isUsedUp && !this.#stopping.signal.aborted && this.parts.mayRun() && !this.#mustWait()) {
        if (this.#stoodStill()) {
          await new Promise(setImmediate)
          continue
        }
        const event = pages.take()
        if (!this.#concerns(event)) {
          this.progress.pass(event.position)
          continue
        }
        const taken = this.#take(event)
        if (taken) await taken
        else if (pages.taken % TURN === 0) await undefined
      }
    }
    if (!pages.isUsedUp || this.#stopping.signal.aborted) return
    this.progress.pass(pages.upTo)
    this.writer.passed()
  }

  #stoodStill(): boolean {
    const now = this.parts.clock.monotonic()
    const sinceMs = now - this.#begunMs
    this.#begunMs = now
    return sinceMs > STOOD_STILL_MS
  }

  #concerns(event: AnyEvent): boolean {
    return this.definition.matches(event) && !this.progress.wasFinished(event.position)
  }

  #take(event: AnyEvent): Promise<void> | undefined {
    const item = this.#toItem(event)
    const waits = this.lanes.isHeld(item.key)
    this.progress.take(event.position)
    // Also while the letter in front is being redriven: what waits already comes first.
    if (this.parkedKeys.has(item.key)) return park(this, [item])
    this.lanes.add(item)
    return waits ? undefined : this.#start(item)
  }

  /** A `key` that throws is a failure of this event, not of the run. */
  #toItem(event: AnyEvent): Item {
    try {
      return toItem(event, String(this.definition.keyOf(event)))
    } catch (error) {
      return { ...toItem(event, event.key), keyError: error ?? new Error('key threw nothing') }
    }
  }

  async #takeBatch(): Promise<void> {
    const batch = this.#left.length > 0 ? this.#left : this.#nextBatch()
    this.#left = await runBatch(this, batch, (item) => this.#start(item))
  }

  #nextBatch(): Item[] {
    const pages = this.#pages
    const batch: Item[] = []
    while (!pages.isUsedUp && batch.length < this.definition.batchSize) {
      const event = pages.take()
      if (!this.#concerns(event)) {
        this.progress.pass(event.position)
        continue
      }
      this.progress.take(event.position)
      batch.push(this.#toItem(event))
    }
    return batch
  }

  /** Starts an event; with one lane, its end is to be waited for. */
  #start(item: Item): Promise<void> | undefined {
    this.lanes.begin(item)
    if (this.definition.concurrency === 1 || this.careful > 0) return tryEvent(this, item)
    this.#running++
    void this.#runInLane(item)
    return undefined
  }

  async #runInLane(item: Item): Promise<void> {
    try {
      await tryEvent(this, item)
    } catch (error) {
      this.parts.logger.error(
        { subscription: this.definition.id, err: error },
        'a lane failed; the subscription is taken up again',
      )
      this.#failed ||= classify(error) === 'permanent'
      this.end('lost')
    } finally {
      this.#running--
      this.#waker.wake()
    }
  }

  /** Sleeps until something is due, new, marked or over. */
  async #rest(): Promise<void> {
    const { clock, limit, mayRun } = this.parts
    // A hold that ended since the round is due now: what waits for it is neither in a lane nor news.
    const dueInMs = (this.#heldUntilMs > 0 ? this.#heldUntilMs : this.lanes.nextDueMs()) - clock.monotonic()
    const polls = limit !== undefined || !mayRun()
    const waitMs = Math.max(1, Math.min(dueInMs, polls ? 100 : 60_000))
    const wait = () => this.#waker.wait(waitMs, this.#stopping.signal).catch(() => {})
    // Only "nothing new" is ended by news: what must wait for something else would be woken again at once, for ever.
    if (polls || this.#mustWait()) await wait()
    else await this.#follower.idle(this.progress.scanned, { wake: () => this.#waker.wake(), wait })
  }

  #saved({ position }: Checkpoint): void {
    const { database, tellsDetails, logger } = this.parts
    database.commits.work++
    if (tellsDetails) logger.debug({ subscription: this.lease.id, position: String(position) }, 'checkpoint')
    if (this.definition.mostUnsaved < Number.POSITIVE_INFINITY) this.#waker.wake()
  }

  async #flush(): Promise<boolean> {
    try {
      await this.writer.flush()
      return !this.lost
    } catch (error) {
      this.parts.logger.warn({ subscription: this.definition.id, err: error }, 'the last checkpoint was not written')
      return false
    }
  }
}

function leaseLost(id: string): AftercommitError {
  return new AftercommitError('LEASE_LOST', `The lease of "${id}" was lost.`)
}
