/**
 * The right of this process to work: one lease for all it has claimed, renewed apart from the work. States, failures first:
 *
 *   ran out or taken     (the process stood still, or its lock was free) everything under way is told so; a new worker begins
 *   the database is away the loop is restarted; the lease may run out meanwhile, and then nothing that was claimed is settled
 *   held                 looked after four times per lease; more often while nothing is heard, or others must be watched
 *
 * It is also how a worker learns what others did: pauses, marked letters, workers that are gone.
 */
import { randomBytes } from 'node:crypto'
import type { Database, ProcessLock } from '../postgres/index.ts'
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
import {
  confirmVersion,
  dismissWorker,
  enlistWorker,
  expireWorkers,
  forgetWorkers,
  LEASE_SECONDS,
  noteUnknownWorkers,
  nudgeWorkers,
  renewWorker,
  selectPaused,
  type WorkerNews,
} from './worker-statements.ts'

export interface LeaseOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly process: string
  readonly lock: () => ProcessLock
  /** Whether this process hears of changes; if not, it looks for them. */
  readonly willHear: () => boolean
  readonly onLost: () => void
  /** Something was paused, resumed or cancelled. What was claimed may be gone; awaited before this worker says it knows. */
  readonly onChange: () => Promise<void>
  /** There is a lease now, or something else to know, as asked at this time. */
  readonly onNews: (news: WorkerNews, askedAt: number) => void
}

/** So often, on average, somebody looks whether a worker has died; so often each does that hears nothing. */
const WATCH_MS = 2_000
const RENEW_MS = (LEASE_SECONDS / 4) * 1_000
/** A worker without the lock of its process for this long is gone; one that merely reconnects is not. */
const GONE_AFTER_MS = 1_000
/** Those that could not be forgotten are tried again after this long: somebody must take up what they left first. */
const FORGET_EVERY_MS = 30_000
/** So long after the last renewal nothing new is begun: the lease may be somebody else's. */
const SAFE_MS = (LEASE_SECONDS - 10) * 1_000

export class Lease implements Service {
  readonly name = 'delivery lease'
  readonly #options: LeaseOptions
  readonly #loop: Loop
  readonly #lockless = new Map<string, number>()
  #hasGone = false
  #forgetAt = 0
  #worker: string | undefined
  #renewedAt = 0
  /** Which lock was held when the last renewal was sent, by number. */
  #renewedUnder = -1
  #seen = -1n
  #paused = new Set<string>()
  #names = '[]'
  #namesWritten = ''
  #isInformed = false
  /** Renewals that were begun. */
  #renewals = 0
  readonly #curious = new Set<{ readonly since: number; tell(): void }>()

  constructor(options: LeaseOptions) {
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

  /** The worker that may claim now; undefined while there is no lease, or while others may take us for gone. */
  get worker(): string | undefined {
    const { clock, lock } = this.#options
    const { holds, possible, gained } = lock()
    // Without the lock, it may have been taken for gone: that it was not is known when it was renewed with the lock it has now.
    if (possible && (!holds || gained !== this.#renewedUnder)) return undefined
    return clock.monotonic() - this.#renewedAt < SAFE_MS ? this.#worker : undefined
  }

  /** It knows what is paused and limited, and others wait for its word before they rely on a change. */
  get isInformed(): boolean {
    return this.#isInformed && this.worker !== undefined
  }

  /** There are workers that are gone and may have left something. */
  get hasGone(): boolean {
    return this.#hasGone
  }

  /** Resolves with news that were asked for from now on, or when this ends without any. */
  untilInformed(): Promise<void> {
    this.#loop.wake()
    return new Promise((resolve) => this.#curious.add({ since: this.#renewals, tell: resolve }))
  }

  isPaused(kind: string, name: string, destination: string): boolean {
    if (this.#paused.size === 0) return false
    return this.#paused.has(JSON.stringify([kind, name])) || this.#paused.has(JSON.stringify([destination]))
  }

  /** What this process can do from now on, as JSON: others learn what nobody does. */
  rename(names: string): void {
    this.#names = names
    this.#loop.wake()
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    const worker = this.#worker
    this.#worker = undefined
    this.#isInformed = false
    this.#tellCurious(Number.POSITIVE_INFINITY)
    if (worker) await this.#sayGoodbye(worker)
  }

  /** Somebody changed something. */
  nudge(): void {
    this.#loop.wake()
  }

  async #run(context: LoopContext): Promise<void> {
    for (;;) {
      if (this.#options.lock().lacks) {
        await this.#giveUp()
        await context.wait(WATCH_MS)
        continue
      }
      const worker = this.#worker ?? (await this.#enlist())
      this.#worker = worker
      const sentAt = this.#options.clock.monotonic()
      const { gained } = this.#options.lock()
      const number = ++this.#renewals
      const news = await this.#renew(worker)
      if (!news.held) {
        this.#lose()
        continue
      }
      this.#renewedAt = sentAt
      if (news.version > this.#seen) await this.#obey(worker, news.version)
      this.#renewedUnder = gained
      const expired = await this.#expireGone(news.lockless)
      this.#hasGone = expired || (news.expired && !(await this.#forgetGone()))
      this.#options.onNews(news, sentAt)
      this.#isInformed = true
      this.#tellCurious(number)
      await context.wait(nextLookMs({ ...news, hears: this.#options.willHear(), spread: Math.random() }))
    }
  }

  #tellCurious(number: number): void {
    for (const one of this.#curious) {
      if (one.since >= number) continue
      this.#curious.delete(one)
      one.tell()
    }
  }

  async #enlist(): Promise<string> {
    const { database, process, lock } = this.#options
    // Short: it is written into every row that is claimed.
    const worker = randomBytes(6).toString('base64url')
    await noteUnknownWorkers(database.control)
    await forgetWorkers(database.control)
    const names = this.#names
    await enlistWorker(database.control, { worker, process, names, locks: lock().possible })
    // Who is alone does not look often whether somebody has died.
    await nudgeWorkers(database.control, database.schemaName.channel)
    this.#namesWritten = names
    this.#seen = -1n
    return worker
  }

  async #renew(worker: string): Promise<WorkerNews> {
    const { database, lock } = this.#options
    const names = this.#names
    const changed = names === this.#namesWritten ? null : names
    const news = await renewWorker(database.control, { worker, names: changed, locks: lock().possible })
    this.#namesWritten = names
    return news
  }

  /** A process that cannot prove that it is alive does no work, so it must not keep others from it by renewing. */
  async #giveUp(): Promise<void> {
    const worker = this.#worker
    if (worker === undefined) return
    this.#lose()
    await this.#sayGoodbye(worker)
  }

  /** Not a duty: the lease runs out by itself. What was left is free, and others need not wait until they look by themselves. */
  async #sayGoodbye(worker: string): Promise<void> {
    const { database } = this.#options
    try {
      await dismissWorker(database.control, worker)
      await nudgeWorkers(database.control, database.schemaName.channel)
    } catch {}
  }

  #lose(): void {
    this.#options.logger.warn(
      { worker: this.#worker },
      'claim lost: the lease of this worker ran out or was taken; what it did is not counted',
    )
    this.#worker = undefined
    this.#isInformed = false
    this.#options.onLost()
  }

  /** Obeyed before it is said so: whoever pauses waits for our word. */
  async #obey(worker: string, version: bigint): Promise<void> {
    const { database, onChange } = this.#options
    const paused = await selectPaused(database.control)
    this.#paused = new Set(
      paused.map(({ kind, name, destination }) => JSON.stringify(destination === null ? [kind, name] : [destination])),
    )
    await onChange()
    await confirmVersion(database.control, worker, version)
    this.#seen = version
  }

  /** True when some were. */
  async #expireGone(lockless: readonly string[]): Promise<boolean> {
    const { database, clock, logger } = this.#options
    const now = clock.monotonic()
    for (const worker of this.#lockless.keys()) if (!lockless.includes(worker)) this.#lockless.delete(worker)
    for (const worker of lockless) if (!this.#lockless.has(worker)) this.#lockless.set(worker, now)
    const gone = lockless.filter((worker) => now - this.#lockless.get(worker)! >= GONE_AFTER_MS)
    if (gone.length === 0) return false
    await expireWorkers(database.control, gone)
    // Others may have what it takes to do what they left, and each does one at a time of that.
    await nudgeWorkers(database.control, database.schemaName.channel)
    logger.warn({ workers: gone.length }, 'workers are gone; what they had claimed is taken up')
    return true
  }

  /** True when none is left. */
  async #forgetGone(): Promise<boolean> {
    const { database, clock } = this.#options
    if (clock.monotonic() < this.#forgetAt) return false
    const areForgotten = await forgetWorkers(database.control)
    if (!areForgotten) this.#forgetAt = clock.monotonic() + FORGET_EVERY_MS
    return areForgotten
  }
}

/**
 * All watch each other together: the more there are, the less often each of them looks, at a time of its own. One that
 * seems to be gone is looked at again as soon as it may be taken for that.
 */
export function nextLookMs({
  others,
  lockless,
  hears,
  spread,
}: Pick<WorkerNews, 'others' | 'lockless'> & { readonly hears: boolean; readonly spread: number }): number {
  if (lockless.length > 0) return GONE_AFTER_MS
  if (!hears) return WATCH_MS
  if (others === 0) return RENEW_MS
  return Math.min(WATCH_MS * (others + 1), RENEW_MS) * (0.75 + spread / 4)
}
