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
import type { TypeBounds } from '../events/index.ts'
import type { Database } from '../postgres/index.ts'
import { type ProcessInfo, registerProcess, removeProcess } from '../processes/index.ts'
import {
  createLoop,
  type Loop,
  type LoopContext,
  type PartOptions,
  type Service,
  type ServiceState,
} from '../runtime/index.ts'
import { type AnyEvent, type EventRow, isTooLarge, rowSize, toEvent } from './event-row.ts'
import { createFrontier, deliverable } from './frontier.ts'
import {
  findLogObjects,
  type LogCheck,
  type LogObjects,
  observe,
  publishFrontier,
  readPastHole,
  readRows,
} from './frontier-statements.ts'
import { Heartbeat } from './heartbeat.ts'
import { HistoryCheck } from './history-check.ts'
import { IdleMark } from './idle-mark.ts'
import { isFull, nextPageSize, PAGE_BYTES } from './page-size.ts'
import { createReadBudget, type ReadBudgetStatus } from './read-budget.ts'
import { afterRead, type ReadWindow } from './read-window.ts'
import { createRecentEvents, type RecentEvents } from './recent-events.ts'
import { createRhythm, type RhythmState } from './rhythm.ts'
import { Waiters } from './waiters.ts'
import { selectWindow, type WindowFilter } from './window-statements.ts'

export interface TailerOptions extends PartOptions {
  readonly database: Database
  readonly info: ProcessInfo
  /** Whether notifications can be heard now. */
  readonly canHear: () => boolean
  /** The name of the lock that proves this process alive; null while it is not held. */
  readonly lockKey: () => string | null
  /** Asks whether this process may still write to the schema. */
  readonly checkSchema: () => Promise<void>
  /** From now on every commit rings. */
  readonly onArmed: () => void
  /** Bytes of events that all readers may hold together. Default: a fifth of the heap limit. */
  readonly eventBytes?: number | undefined
}

export interface Page {
  readonly events: AnyEvent[]
  /** Everything up to here is in this page or was before it. */
  readonly upTo: bigint
}

/** The filter of a reader, and how far one read goes. */
export interface PageFilter {
  /** A POSIX regular expression over the type, from code; never from a client. */
  readonly type?: string | undefined
  readonly types?: TypeBounds | undefined
  readonly tenant?: string | undefined
  readonly window: ReadWindow
  /** Who keeps the page while it is worked on. Readers that share one name none. */
  readonly reader?: object | undefined
}

export interface FilteredPage extends Page {
  /** For the next read of the same reader. */
  readonly window: ReadWindow
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

const PUBLISH_MS = 1_000
/** How often what keeps coming is read while nobody waits for it. */
const UNWANTED_POLL_MS = 100

export class Tailer implements Service {
  readonly name = 'tailer'
  readonly #options: TailerOptions
  readonly #loop: Loop
  readonly #frontier = createFrontier(0n)
  readonly #recent: RecentEvents
  readonly #budget
  readonly #rhythm = createRhythm()
  readonly #mark: IdleMark
  readonly #waiters: Waiters
  readonly #heart: Heartbeat
  readonly #check: HistoryCheck
  readonly #started: { promise: Promise<void>; resolve: () => void }
  readonly #holes
  readonly #oversized
  #objects: LogObjects = { sequence: '0', events: '0', database: '0' }
  #epoch = 0
  /** Everything at or below was read or skipped for good. */
  #at = 0n
  #witness = 0n
  #hole = false
  #blockedSince: number | undefined
  #pageSize = 1_000
  #duePublish = 0
  #rungSinceRead = false
  /** The last wait ended by itself. */
  #waitedInVain = false
  #foundByFallback = 0

  constructor(options: TailerOptions) {
    this.#options = options
    this.#started = withResolvers()
    const { database, clock, logger, health, info, lockKey } = options
    this.#budget = createReadBudget(clock, options.eventBytes)
    this.#recent = createRecentEvents(0n, { maxSize: this.#budget.ringBytes })
    const { control } = database
    this.#mark = new IdleMark(control, clock, info.process)
    this.#waiters = new Waiters(clock)
    this.#heart = new Heartbeat({ control, clock, logger, info, lockKey })
    const onEpoch = async (found: LogCheck) => {
      if (found.epoch !== this.#epoch) await this.#enterEpoch(found)
    }
    this.#check = new HistoryCheck({ control, clock, logger, health, onEpoch })
    this.#holes = options.metrics.counter({
      name: 'aftercommit_log_holes_total',
      help: 'Positions that were passed because their transaction rolled back.',
    })
    this.#oversized = options.metrics.counter({
      name: 'aftercommit_log_oversized_events_total',
      help: 'Events that were larger than a reader loads, and were passed without their content.',
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
    this.#waiters.tell()
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

  /** What readers of this process may hold of the log. */
  get memory(): ReadBudgetStatus {
    return this.#budget.status()
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
    this.#heart.hurry()
    this.#rhythm.disarmed(this.#options.clock.monotonic())
    this.#loop.wake()
  }

  /** Resolves when something above `after` is final, or the tailer stops. */
  async waitBeyond(after: bigint, signal: AbortSignal): Promise<void> {
    if (!this.#waiters.areThere) this.#loop.wake()
    this.#waiters.came()
    if (this.#at > after || signal.aborted) return
    await this.#waiters.wait(signal)
  }

  /**
   * Final events above a position, in order. Shared with other readers: `liftEvent` copies one to hand on. A page of the
   * database holds only events that pass the filter, and ends with the window at the latest. A page of recent events is
   * not filtered, and says nothing about the next window.
   */
  async readFiltered(
    after: bigint,
    limit: number,
    { window, type, types, tenant, reader }: PageFilter,
  ): Promise<FilteredPage> {
    const recent = this.#readRecent(after, limit)
    if (recent) return { ...recent, window }
    const upTo = minOf(this.#at, after + window.positions)
    const maxBytes = this.#budget.pageBytes(reader)
    const page = await this.#readLog({ after, upTo, type, types, tenant, limit, maxBytes })
    return { ...page, window: afterRead(window, { covered: page.upTo - after, found: page.events.length, limit }) }
  }

  #readRecent(after: bigint, limit: number): Page | undefined {
    const events = this.#recent.read(after, limit)
    return events && { events, upTo: events.length < limit ? maxOf(this.#at, after) : events.at(-1)!.position }
  }

  async #readLog(wanted: WindowFilter): Promise<Page> {
    // Not the pool for work: handlers that hold all of it must not keep others from reading.
    const rows = await selectWindow(this.#options.database.control, wanted)
    this.#tellOfLarge(rows)
    const events = rows.map(toEvent)
    return {
      events,
      upTo: isFull(rows, wanted.limit, wanted.maxBytes) ? events.at(-1)!.position : maxOf(wanted.upTo, wanted.after),
    }
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
        const leastMs = found.any && !this.#waiters.areThere ? UNWANTED_POLL_MS : 0
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
    await this.#options.checkSchema()
    this.#objects = await findLogObjects(control)
    await this.#check.look(context)
    await registerProcess(control, this.#options.info, this.#options.lockKey())
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
      const past = await readPastHole(database.control, this.#objects, this.#at, this.#pageSize, this.#pageBytes)
      this.#frontier.observe(past.observation, clock.monotonic())
      rows = past.rows
    } else {
      rows = await readRows(database.control, this.#at, this.#pageSize, this.#pageBytes)
    }
    // A new connection may lead to another server, with another history: what it said does not count yet.
    if (!this.#check.isSameServer()) return { any: false, more: false }
    const taken = this.#take(rows)
    if (taken > 0 && unasked && !this.#rungSinceRead) this.#foundByFallback++
    const undelivered = rows.length - taken
    const foundHole = undelivered > 0
    // A hole that was just found is looked at once more right away: most often its owner has long rolled back.
    const more = (taken > 0 && isFull(rows, asked, this.#pageBytes)) || (foundHole && !this.#hole)
    this.#hole = foundHole
    // What lies behind a hole is read again and again while it is open, so not much of it.
    if (taken === 0 && foundHole) this.#pageSize = 100
    this.#blockedSince = foundHole ? (this.#blockedSince ?? clock.monotonic()) : undefined
    this.#rhythm.read({ found: taken, blocked: foundHole }, clock.monotonic())
    return { any: taken > 0, more }
  }

  /** What the tailer reads goes into the ring at once. */
  get #pageBytes(): number {
    return Math.min(PAGE_BYTES, this.#budget.ringBytes)
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
    this.#tellOfLarge(rows.slice(0, count))
    const exhausted = count === rows.length && !isFull(rows, this.#pageSize, this.#pageBytes)
    const reached = exhausted || count < rows.length ? maxOf(last, this.#frontier.position) : last
    this.#pageSize = nextPageSize(count, size, { maxSize: this.#pageBytes })
    if (reached === this.#at) return count
    this.#holes.inc(Number(reached - this.#at) - count)
    this.#at = reached
    if (count > 0) this.#witness = positions[count - 1]!
    this.#frontier.reachedWithoutHole(reached)
    this.#blockedSince = undefined
    this.#waiters.tell()
    return count
  }

  /** The owner of a log that holds such an event learns of it: its handlers are not called. */
  #tellOfLarge(rows: readonly EventRow[]): void {
    for (const row of rows) {
      if (!isTooLarge(row)) continue
      this.#oversized.inc()
      const fields = { event_id: row.id, event_type: row.type, position: row.pos, bytes: Number(row.bytes) }
      this.#options.logger.error(fields, 'an event is larger than a reader loads, so it is passed without its content')
    }
  }

  async #housekeeping(context: LoopContext): Promise<void> {
    const now = this.#options.clock.monotonic()
    if (this.#check.isDue) await this.#check.look(context)
    // Also when nothing moved: events that came after a sequence was set back lie below what was read.
    if (now >= this.#duePublish) {
      this.#duePublish = now + PUBLISH_MS
      if (!(await this.#publish())) await this.#check.look(context)
    }
    if (this.#rhythm.state !== 'polling' && this.#mark.hasLapsed) this.bellWasLost()
    if (this.#heart.isDue) await this.#beat()
  }

  async #beat(): Promise<void> {
    await this.#options.checkSchema()
    const armed = this.#rhythm.state !== 'polling'
    const isMarked = await this.#heart.beat(armed)
    this.#mark.renewed()
    if (armed && !isMarked) this.bellWasLost()
  }

  async #enterEpoch({ epoch, frontier, began }: LogCheck): Promise<void> {
    const { database, logger, clock } = this.#options
    const first = this.#epoch === 0
    if (!first)
      logger.error(
        { epoch, position: String(frontier) },
        `a new epoch of the log began: ${began ?? 'history has forked'}`,
      )
    this.#epoch = epoch
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
    this.#waiters.tell()
  }

  #mayArm(): boolean {
    return this.#heart.mayBeRung && this.#options.canHear()
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

  /** False: history may have forked. */
  async #publish(): Promise<boolean> {
    return publishFrontier(this.#options.database.control, this.#epoch, this.#at, this.#witness)
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
