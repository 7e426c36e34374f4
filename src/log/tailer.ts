/**
 * The one reader of new events in a process, whatever the number of subscriptions. It reads forward, decides how far the
 * log is final, keeps the newest events at hand and tells those who wait. Its states, failures first:
 *
 *   the database is away     the loop is restarted with a growing delay; nothing is forgotten but what it waited for
 *   history has forked       a new epoch: it goes back to where both histories agree, and readers beyond are told
 *   the log is unsafe        (sequence cache, standby) it reads nothing and says why in health, until that is over
 *   at a hole                it observes and reads in one round trip, every few milliseconds, until the hole is settled
 *   polling, arming, armed   see rhythm.ts
 */
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
} from '../runtime/index.ts'
import { type AnyEvent, type EventRow, rowSize, toEvent } from './event-row.ts'
import { createFrontier, deliverable } from './frontier.ts'
import {
  checkLog,
  findLogObjects,
  type LogObjects,
  observe,
  publishFrontier,
  readPastHole,
  readRows,
} from './frontier-statements.ts'
import { IdleMark } from './idle-mark.ts'
import { nextPageSize } from './page-size.ts'
import { createRecentEvents } from './recent-events.ts'
import { createRhythm, type RhythmState } from './rhythm.ts'
import { selectEvents } from './statements.ts'
import { beatHeart, type ProcessInfo, registerProcess, removeProcess } from './wake-statements.ts'

export interface TailerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly info: ProcessInfo
  /** Whether notifications can be heard now. */
  readonly canHear: () => boolean
  /** Whether the lock that proves this process alive is held. */
  readonly holdsLock: () => boolean
  /** From now on every commit rings. */
  readonly onArmed: () => void
}

export interface Page {
  readonly events: AnyEvent[]
  /** Everything up to here is in this page or was before it. */
  readonly upTo: bigint
}

export interface PageFilter {
  /** A POSIX regular expression over the type. */
  readonly type?: string | undefined
  readonly tenant?: string | undefined
  readonly span?: bigint | undefined
}

export interface TailerStatus {
  readonly epoch: number
  readonly frontier: bigint
  readonly state: RhythmState
  /** For how long a hole has kept the frontier from moving. */
  readonly blockedForMs: number
  /** Reads that found something although nobody had rung: lost bells show here. */
  readonly foundByFallback: number
}

const HEARTBEAT_MS = 10_000
const CHECK_MS = 30_000
const PUBLISH_MS = 1_000
/** While nobody has waited for an event for this long, there is no hurry to read what keeps coming. */
const UNWANTED_MS = 1_000
const UNWANTED_POLL_MS = 100

export class Tailer implements Service {
  readonly name = 'tailer'
  readonly #options: TailerOptions
  readonly #loop: Loop
  readonly #frontier = createFrontier(0n)
  readonly #recent = createRecentEvents(0n)
  readonly #rhythm = createRhythm()
  readonly #mark: IdleMark
  readonly #waiting = new Set<() => void>()
  #lastWaited = Number.NEGATIVE_INFINITY
  readonly #started: { promise: Promise<void>; resolve: () => void }
  readonly #holes
  #objects: LogObjects = { sequence: '0', database: '0' }
  #epoch = 0
  /** Everything at or below was read or skipped for good. */
  #at = 0n
  #witness = 0n
  #published = 0n
  #hole = false
  #blockedSince: number | undefined
  #pageSize = 1_000
  #wake: 'doorbell' | 'poll' = 'doorbell'
  #queueFull = false
  #dueHeartbeat = 0
  #dueCheck = 0
  /** Connections there had been when history was last looked at. */
  #connections = -1
  #duePublish = 0
  #rungSinceRead = false
  /** The last wait ended by itself. */
  #waitedInVain = false
  #foundByFallback = 0

  constructor(options: TailerOptions) {
    this.#options = options
    this.#started = withResolvers()
    this.#mark = new IdleMark(options.database.control, options.clock, options.info.process)
    this.#holes = options.metrics.counter({
      name: 'aftercommit_log_holes_total',
      help: 'Positions that were passed because their transaction rolled back.',
    })
    options.metrics
      .gauge({
        name: 'aftercommit_frontier_age_seconds',
        help: 'For how long an open appender has kept the log from becoming final; 0 when nobody does.',
      })
      .collect(() => this.status().blockedForMs / 1_000)
    this.#loop = createLoop({
      name: 'tailer',
      clock: options.clock,
      logger: options.logger,
      metrics: options.metrics,
      health: options.health,
      run: (context) => this.#run(context),
    })
  }

  get state(): ServiceState {
    return this.#loop.state
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    this.#tellWaiting()
    if (this.#epoch === 0) return
    const { control } = this.#options.database
    // A goodbye, not a duty: the mark lapses and the frontier is found again without it.
    await Promise.all([this.#publish(), removeProcess(control, this.#options.info.process)]).catch(() => {})
    this.#epoch = 0
  }

  /** Resolves once the tailer knows where the log stands. */
  get started(): Promise<void> {
    return this.#started.promise
  }

  get epoch(): number {
    return this.#epoch
  }

  /** How far readers may read: all of it is final. */
  get frontier(): bigint {
    return this.#at
  }

  status(): TailerStatus {
    return {
      epoch: this.#epoch,
      frontier: this.#at,
      state: this.#rhythm.state,
      blockedForMs: this.#blockedSince === undefined ? 0 : this.#options.clock.monotonic() - this.#blockedSince,
      foundByFallback: this.#foundByFallback,
    }
  }

  /** A notification came. */
  ring(): void {
    this.#rungSinceRead = true
    this.#rhythm.rang(this.#options.clock.monotonic())
    this.#loop.wake()
  }

  /** Notifications may have been missed: read now, and arm anew. */
  bellWasLost(): void {
    this.#mark.lost()
    // Others learn at once whether our lock is held.
    this.#dueHeartbeat = 0
    this.#rhythm.disarmed(this.#options.clock.monotonic())
    this.#loop.wake()
  }

  /** Resolves when something above `after` is final, or the tailer stops. */
  async waitBeyond(after: bigint, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    if (!this.#isWanted(clock.monotonic())) this.#loop.wake()
    this.#lastWaited = clock.monotonic()
    if (this.#at > after || signal.aborted) return
    await new Promise<void>((resolve) => {
      const end = () => {
        this.#waiting.delete(end)
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.#waiting.add(end)
      signal.addEventListener('abort', end, { once: true })
    })
  }

  /**
   * Final events above a position, in order: from memory when they are recent, else a page from the database. A page of
   * the database holds only what the filter lets through and covers at most `span` positions; memory is not filtered.
   * Events are shared with other readers: `liftEvent` gives the copy that may be handed on.
   */
  async read(after: bigint, limit: number, filter: PageFilter = {}): Promise<Page> {
    const recent = this.#recent.read(after, limit)
    if (recent) {
      return { events: recent, upTo: recent.length < limit ? maxOf(this.#at, after) : recent.at(-1)!.position }
    }
    const { span, ...wanted } = filter
    const upTo = span === undefined ? this.#at : minOf(this.#at, after + span)
    // Not the pool for work: handlers that hold all of it must not keep others from reading.
    const rows = await selectEvents(this.#options.database.control, { ...wanted, after, upTo, limit })
    const events = rows.map(toEvent)
    return { events, upTo: rows.length < limit ? maxOf(upTo, after) : events.at(-1)!.position }
  }

  async #run(context: LoopContext): Promise<void> {
    await this.#begin(context)
    for (;;) {
      context.signal.throwIfAborted()
      const found = await this.#readOnce()
      context.beat()
      if (found.more) continue
      await this.#housekeeping(context)
      const now = this.#options.clock.monotonic()
      const { waitMs, change } = this.#rhythm.next(this.#mayArm(), now)
      if (change === 'arm') await this.#arm()
      else if (change === 'disarm') await this.#disarm()
      else if (this.#rhythm.state === 'arming' && (await this.#mark.isSeenByAll(this.#objects))) {
        await this.#readOnce()
        if (this.#mark.stands) {
          this.#rhythm.armed()
          this.#options.onArmed()
        }
      } else {
        const leastMs = found.any && !this.#isWanted(now) ? UNWANTED_POLL_MS : 0
        this.#waitedInVain = (await context.wait(Math.max(waitMs, leastMs))) === 'elapsed'
      }
    }
  }

  /** Finds out where the log stands; after a lost connection, again. */
  async #begin(context: LoopContext): Promise<void> {
    const { control } = this.#options.database
    this.#frontier.forget()
    this.#rhythm.disarmed(this.#options.clock.monotonic())
    this.#mark.lost()
    this.#objects = await findLogObjects(control)
    await this.#check(context)
    await registerProcess(control, this.#options.info)
    const { logger } = this.#options
    logger.info({ epoch: this.#epoch, position: String(this.#at) }, 'tailer started')
    this.#started.resolve()
  }

  /** One read, past a hole if there was one. `any`: it found something; `more`: read again at once. */
  async #readOnce(): Promise<{ any: boolean; more: boolean }> {
    const { database, clock } = this.#options
    // An event may also be met by a read that was under way when it was committed; its ring comes a moment later.
    const unasked = this.#waitedInVain && !this.#rungSinceRead && this.#rhythm.state === 'armed' && !this.#hole
    this.#waitedInVain = false
    this.#rungSinceRead = false
    const asked = this.#pageSize
    let rows: EventRow[]
    if (this.#hole) {
      const past = await readPastHole(database.control, this.#objects, this.#at, this.#pageSize)
      this.#frontier.observe(past.observation, clock.monotonic())
      rows = past.rows
    } else {
      rows = await readRows(database.control, this.#at, this.#pageSize)
    }
    // A new connection may lead to another server, with another history: what it said does not count yet.
    if (database.control.stats().made !== this.#connections) {
      this.#dueCheck = 0
      return { any: false, more: false }
    }
    const taken = this.#take(rows)
    if (taken > 0 && unasked && !this.#rungSinceRead) this.#foundByFallback++
    const undelivered = rows.length - taken
    const foundHole = undelivered > 0
    // A hole that was just found is looked at once more right away: most often its owner has long rolled back.
    const more = (taken > 0 && rows.length === asked) || (foundHole && !this.#hole)
    this.#hole = foundHole
    // What lies behind a hole is read again and again while it is open, so not much of it.
    if (taken === 0 && foundHole) this.#pageSize = 100
    this.#blockedSince = foundHole ? (this.#blockedSince ?? clock.monotonic()) : undefined
    this.#rhythm.read({ found: taken, blocked: foundHole }, clock.monotonic())
    return { any: taken > 0, more }
  }

  /** Takes in what is final, and tells those who wait for it. */
  #take(rows: readonly EventRow[]): number {
    const positions = rows.map((row) => BigInt(row.pos))
    const { count, last } = deliverable(positions, this.#at, this.#frontier.position)
    let size = 0
    for (let i = 0; i < count; i++) {
      const weight = rowSize(rows[i]!)
      size += weight
      this.#recent.push(toEvent(rows[i]!), weight)
    }
    const exhausted = count === rows.length && rows.length < this.#pageSize
    const reached = exhausted || count < rows.length ? maxOf(last, this.#frontier.position) : last
    this.#pageSize = nextPageSize(count, size)
    if (reached === this.#at) return count
    this.#holes.inc(Number(reached - this.#at) - count)
    this.#at = reached
    if (count > 0) this.#witness = positions[count - 1]!
    this.#frontier.reachedWithoutHole(reached)
    this.#blockedSince = undefined
    this.#tellWaiting()
    return count
  }

  async #housekeeping(context: LoopContext): Promise<void> {
    const now = this.#options.clock.monotonic()
    if (now >= this.#dueCheck) await this.#check(context)
    if (this.#at > this.#published && now >= this.#duePublish) {
      this.#duePublish = now + PUBLISH_MS
      await this.#publish()
    }
    if (this.#rhythm.state !== 'polling' && this.#mark.hasLapsed) this.bellWasLost()
    if (now >= this.#dueHeartbeat) await this.#beat()
  }

  async #beat(): Promise<void> {
    const { database, clock, info } = this.#options
    const armed = this.#rhythm.state !== 'polling'
    // Before the statement: whoever asks for another one meanwhile gets it.
    this.#dueHeartbeat = clock.monotonic() + HEARTBEAT_MS
    const beat = await beatHeart(database.control, info.process, armed, this.#options.holdsLock())
    this.#mark.renewed()
    this.#wake = beat.wake
    if (beat.queueUsage >= 0.5 && !this.#queueFull) {
      this.#options.logger.warn(
        { usage: beat.queueUsage },
        'the notification queue of the server is more than half full, so nobody rings; find the session that listens and stays in a transaction',
      )
    }
    this.#queueFull = beat.queueUsage >= 0.5
    if (!beat.registered) await registerProcess(database.control, info)
    if (armed && !beat.marked) this.bellWasLost()
  }

  /** Has history forked, and may the log be read at all? */
  async #check(context: LoopContext): Promise<void> {
    const { database, clock, logger, health } = this.#options
    for (;;) {
      const connections = database.control.stats().made
      const check = await checkLog(database.control)
      // The look itself may have made one; then it is looked at once more.
      this.#connections = connections
      this.#dueCheck = clock.monotonic() + CHECK_MS
      if (check.epoch !== this.#epoch) await this.#enterEpoch(check.epoch, check.frontier, check.began)
      if (check.problem === null) break
      health.report({ name: 'log', live: true, ready: false, reason: check.problem })
      logger.error({ code: 'LOG_UNSAFE' }, check.problem)
      await context.wait(5_000)
    }
    health.report({ name: 'log', live: true, ready: true })
  }

  async #enterEpoch(epoch: number, frontier: bigint, began: string | null): Promise<void> {
    const { database, logger, clock } = this.#options
    const first = this.#epoch === 0
    if (!first)
      logger.error(
        { epoch, position: String(frontier) },
        `a new epoch of the log began: ${began ?? 'history has forked'}`,
      )
    this.#epoch = epoch
    this.#published = frontier
    this.#frontier.restart(first ? frontier : minOf(frontier, this.#at))
    this.#witness = 0n
    if (first) {
      // Old holes are behind the published frontier; what lies between it and the head is most often settled at once.
      const seen = await observe(database.control, this.#objects)
      this.#frontier.observe(seen, clock.monotonic())
      if (seen.head <= this.#frontier.position) this.#witness = seen.head
    }
    this.#at = this.#frontier.position
    this.#recent.restart(this.#at)
    this.#hole = false
    this.#tellWaiting()
  }

  #isWanted(now: number): boolean {
    return this.#waiting.size > 0 || now - this.#lastWaited < UNWANTED_MS
  }

  #mayArm(): boolean {
    return this.#wake === 'doorbell' && !this.#queueFull && this.#options.canHear()
  }

  async #arm(): Promise<void> {
    await this.#mark.write(this.#objects)
    // The bell may have been lost meanwhile, and with it our mark: then it is written anew.
    if (this.#mark.stands) this.#rhythm.arming()
  }

  async #disarm(): Promise<void> {
    this.#rhythm.disarmed(this.#options.clock.monotonic())
    await this.#mark.remove()
  }

  async #publish(): Promise<void> {
    const position = this.#at
    await publishFrontier(this.#options.database.control, this.#epoch, position, this.#witness)
    this.#published = position
  }

  #tellWaiting(): void {
    for (const end of [...this.#waiting]) end()
  }
}

function maxOf(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function minOf(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** Promise.withResolvers came with Node 22. */
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
