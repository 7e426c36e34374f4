/**
 * The lease of this process: its right to work, renewed apart from the work. Subscriptions and claims of deliveries name
 * it. States, failures first:
 *
 *   ended by the database   it ran out while the process stood still, its lock was free for a second, or a new epoch of the
 *                           log began: everything under it is given up, and the next lease has a new name
 *   without its lock        for longer than a lease: the process cannot prove that it lives, so it gives its lease back
 *                           instead of keeping others from the work
 *   not renewed for 12 s    the database is away: nothing new is begun; what was begun may end
 *   held                    renewed every 5 s; looked at more often where others must be watched
 *
 * The same look tells which other processes live. Whoever is seen twice without its lock is gone, and its lease is ended.
 */
import type { Database, ProcessLock } from '../postgres/index.ts'
import {
  createLoop,
  type Loop,
  type LoopContext,
  type PartOptions,
  type Service,
  type ServiceState,
} from '../runtime/index.ts'
import { GONE_AFTER_MS, nextLookMs, RENEW_MS, SAFE_MS, SILENT_MS, STANDBY_WATCH_MS } from './numbers.ts'
import {
  beginLease,
  endGoneLeases,
  endLease,
  lookAtLeases,
  type Others,
  type ProcessInfo,
  tellLeasesChanged,
} from './statements.ts'

export interface LeaseKeeperOptions extends PartOptions {
  readonly database: Database
  readonly info: ProcessInfo
  /** The lock that proves to others that this process lives. */
  readonly lock: () => ProcessLock
}

/** What the rest of the process asks. */
export interface ProcessLease {
  /** The lease under which work may begin now; undefined while there is none, or while others may take us for gone. */
  readonly current: string | undefined
  /** Tells when a lease began, when it was lost with all that was held under it, and when another process's lease ended. */
  watch(watcher: LeaseWatcher): void
}

export interface LeaseWatcher {
  /** There is a lease to work under, perhaps a new one. */
  onHeld?(): void
  onLost?(lease: string): void
  /** Another process is gone or has given its lease back: what it held is free. */
  onFreed?(): void
  /** Whether this part waits for what another process holds, and wants to know at once when that is gone. */
  standsBy?(): boolean
}

export class LeaseKeeper implements Service, ProcessLease {
  readonly name = 'process lease'
  readonly #options: LeaseKeeperOptions
  readonly #loop: Loop
  readonly #watchers: LeaseWatcher[] = []
  #lease: string | undefined
  /** When the last renewal was sent, and which lock was held then, by number. */
  #renewedAt = Number.NEGATIVE_INFINITY
  #renewedUnder = -1
  #others: readonly string[] = []
  /** A lease of another process ended since watchers were told. */
  #isOneFreed = false
  /** Leases of processes without their lock, and since when. */
  readonly #lockless = new Map<string, number>()

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#loop = createLoop({
      name: this.name,
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

  get current(): string | undefined {
    const { clock, lock } = this.#options
    const { holds, possible, gained } = lock()
    // Without its lock the process may have been taken for gone. A renewal under the lock it has now says that it was not.
    if (possible && (!holds || gained !== this.#renewedUnder)) return undefined
    return clock.monotonic() - this.#renewedAt < SAFE_MS ? this.#lease : undefined
  }

  watch(watcher: LeaseWatcher): void {
    this.#watchers.push(watcher)
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  /** After those who work under the lease. */
  async stop(): Promise<void> {
    await this.#loop.stop()
    await this.#giveBack()
  }

  /** The lock was gained or lost. */
  look(): void {
    this.#loop.wake()
  }

  /** Another process said that a lease began or ended, maybe one that was never seen here. */
  heardOfChange(): void {
    this.#isOneFreed = true
    this.#loop.wake()
  }

  async #run(context: LoopContext): Promise<void> {
    const { clock, lock } = this.#options
    for (;;) {
      const { holds, possible, gained, lacks } = lock()
      if (lacks && this.#lease !== undefined) {
        const lease = this.#lease
        this.#lose()
        await endLease(this.#options.database.control, lease).catch(() => {})
      }
      if (this.#lease === undefined && possible && !holds) {
        await context.wait(RENEW_MS)
        continue
      }
      const begins = this.#lease === undefined
      if (begins) await this.#begin()
      const lease = this.#lease!
      const sentAt = clock.monotonic()
      const renew = gained !== this.#renewedUnder || sentAt - this.#renewedAt >= RENEW_MS - STANDBY_WATCH_MS / 2
      const process = this.#options.info.process
      const looking = lookAtLeases(this.#options.database.control, { process, lease, locked: possible, renew })
      const seen = await this.#suspicious(looking)
      if (!seen.held) {
        this.#lose()
        continue
      }
      const wasAble = this.current !== undefined
      if (renew) {
        this.#renewedAt = sentAt
        this.#renewedUnder = gained
      }
      if (begins || !wasAble) for (const { onHeld } of this.#watchers) onHeld?.()
      await this.#watchOthers(seen)
      await context.wait(this.#nextLookMs(seen))
    }
  }

  /** The one statement that every process sends all the time: without an answer for 5 s the connections are put on trial. */
  async #suspicious<T>(asked: Promise<T>): Promise<T> {
    const { clock, database } = this.#options
    const cancel = clock.setTimer(SILENT_MS, () => database.distrust())
    try {
      return await asked
    } finally {
      cancel()
    }
  }

  #nextLookMs({ others, lockless }: Others): number {
    const standsBy = this.#watchers.some((watcher) => watcher.standsBy?.() === true)
    const lookMs = nextLookMs({
      others: others.length,
      isOneLockless: lockless.length > 0,
      standsBy,
      spread: Math.random(),
    })
    const toRenewal = this.#renewedAt + RENEW_MS - this.#options.clock.monotonic()
    return Math.max(10, Math.min(lookMs, toRenewal))
  }

  async #begin(): Promise<void> {
    const { database, info, lock } = this.#options
    // Short: it is written into every row that is claimed.
    const lease = Math.random().toString(36).slice(2, 12)
    const { possible, key } = lock()
    await beginLease(database.control, info, { lease, locked: possible, lockKey: key })
    this.#lease = lease
    this.#renewedUnder = -1
    // A process that is alone does not look often whether another one has died.
    await tellLeasesChanged(database.control, database.schemaName.channel)
  }

  #lose(): void {
    const lease = this.#lease!
    this.#lease = undefined
    this.#options.logger.warn(
      { lease },
      'the lease of this process ended before its work: what is under way is given up, and others may take it',
    )
    for (const { onLost } of this.#watchers) onLost?.(lease)
  }

  async #watchOthers({ others, lockless }: Others): Promise<void> {
    const { database, clock, logger } = this.#options
    const now = clock.monotonic()
    for (const lease of this.#lockless.keys()) if (!lockless.includes(lease)) this.#lockless.delete(lease)
    for (const lease of lockless) if (!this.#lockless.has(lease)) this.#lockless.set(lease, now)
    const gone = lockless.filter((lease) => now - this.#lockless.get(lease)! >= GONE_AFTER_MS)
    let live = others
    if (gone.length > 0) {
      const ended = await endGoneLeases(database.control, gone)
      live = others.filter((lease) => !gone.includes(lease))
      if (ended > 0) {
        logger.warn({ processes: ended }, 'processes are gone; what they held is taken up')
        // All processes share what they left.
        await tellLeasesChanged(database.control, database.schemaName.channel)
      }
    }
    const isOneFreed = this.#isOneFreed || this.#others.some((lease) => !live.includes(lease))
    this.#others = live
    this.#isOneFreed = false
    if (isOneFreed) for (const { onFreed } of this.#watchers) onFreed?.()
  }

  /** Not a duty: a lease runs out by itself. */
  async #giveBack(): Promise<void> {
    const lease = this.#lease
    if (lease === undefined) return
    this.#lease = undefined
    const { database } = this.#options
    try {
      await endLease(database.control, lease)
      await tellLeasesChanged(database.control, database.schemaName.channel)
    } catch {}
  }
}
