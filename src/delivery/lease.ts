/**
 * The worker of this process: what it claims names the lease of the process. It says what this process can do, and learns
 * what others did: pauses, marked letters, workers that are gone. States, failures first:
 *
 *   the lease was lost   everything under way is told so, and nothing that was claimed is settled; the next lease is a new
 *                        worker
 *   not informed yet     under a new lease nothing begins before pauses are known and obeyed
 *   informed             asked again at each word of a change, and now and then
 */
import type { Database } from '../postgres/index.ts'
import type { ProcessLease } from '../processes/index.ts'
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
  askForNews,
  confirmVersion,
  dismissWorker,
  enlistWorker,
  forgetWorkers,
  noteUnknownWorkers,
  nudgeWorkers,
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
  readonly processLease: ProcessLease
  /** Whether this process hears of changes; if not, it looks for them. */
  readonly willHear: () => boolean
  readonly onLost: () => void
  /** Something was paused, resumed or cancelled. What was claimed may be gone; awaited before this worker says it knows. */
  readonly onChange: () => Promise<void>
  /** There is a lease now, or something else to know, as asked at this time. */
  readonly onNews: (news: WorkerNews, askedAt: number) => void
}

/** How often a worker asks for news: a notification tells of each change at once. */
const HEARING_MS = 15_000
/** Where nothing is heard. */
const DEAF_MS = 2_000
/** Workers that could not be forgotten are tried again after this long: what they left must be taken up first. */
const FORGET_EVERY_MS = 30_000

export class Lease implements Service {
  readonly name = 'delivery worker'
  readonly #options: LeaseOptions
  readonly #loop: Loop
  #hasGone = false
  #forgetAt = 0
  /** The lease of the process under which it is enlisted. */
  #worker: string | undefined
  #seen = -1n
  #paused = new Set<string>()
  #names = '[]'
  #namesWritten = ''
  #isInformed = false
  /** Questions for news that were begun. */
  #asked = 0
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
    options.processLease.watch({
      onHeld: () => this.#loop.wake(),
      onLost: (lease) => this.#lose(lease),
      onFreed: () => this.#loop.wake(),
    })
  }

  get state(): ServiceState {
    return this.#loop.state
  }

  /** The worker that may claim now; undefined while there is no lease, or while others may take us for gone. */
  get worker(): string | undefined {
    return this.#worker !== undefined && this.#worker === this.#options.processLease.current ? this.#worker : undefined
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
    return new Promise((resolve) => this.#curious.add({ since: this.#asked, tell: resolve }))
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
    // Not a duty: the lease of the process ends soon, and with it the worker.
    if (worker !== undefined) await dismissWorker(this.#options.database.control, worker).catch(() => {})
  }

  /** A change was made somewhere. */
  nudge(): void {
    this.#loop.wake()
  }

  async #run(context: LoopContext): Promise<void> {
    const { processLease, clock, willHear, onNews } = this.#options
    for (;;) {
      const lease = processLease.current
      if (lease === undefined) {
        await context.wait(HEARING_MS)
        continue
      }
      if (lease !== this.#worker) await this.#enlist(lease)
      const sentAt = clock.monotonic()
      const number = ++this.#asked
      const news = await this.#ask(lease)
      // Lost meanwhile: the next lease is another worker.
      if (!news.listed) {
        if (this.#worker === lease) this.#worker = undefined
        if (processLease.current === lease) await context.wait(DEAF_MS)
        continue
      }
      if (news.version > this.#seen) await this.#obey(lease, news.version)
      if (this.#worker !== lease) continue
      this.#hasGone = news.gone && !(await this.#forgetGone())
      onNews(news, sentAt)
      this.#isInformed = true
      this.#tellCurious(number)
      await context.wait(willHear() ? HEARING_MS : DEAF_MS)
    }
  }

  #tellCurious(number: number): void {
    for (const one of this.#curious) {
      if (one.since >= number) continue
      this.#curious.delete(one)
      one.tell()
    }
  }

  async #enlist(worker: string): Promise<void> {
    const { database, process } = this.#options
    await noteUnknownWorkers(database.control)
    await forgetWorkers(database.control)
    const names = this.#names
    await enlistWorker(database.control, { worker, process, names })
    // Workers with more than they can begin share it with one that begins.
    await nudgeWorkers(database.control, database.schemaName.channel)
    this.#namesWritten = names
    this.#seen = -1n
    this.#isInformed = false
    this.#worker = worker
  }

  async #ask(worker: string): Promise<WorkerNews> {
    const names = this.#names
    const changed = names === this.#namesWritten ? null : names
    const news = await askForNews(this.#options.database.control, { worker, names: changed })
    this.#namesWritten = names
    return news
  }

  #lose(lease: string): void {
    if (this.#worker !== lease) return
    const words = 'claim lost: the lease of this process ended before its work; what was under way is not counted'
    this.#options.logger.warn({ worker: lease }, words)
    this.#worker = undefined
    this.#isInformed = false
    this.#options.onLost()
    this.#loop.wake()
  }

  /** Obeyed before it is said so: the owner of a pause waits for our word. */
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

  /** True when none is left. */
  async #forgetGone(): Promise<boolean> {
    const { database, clock } = this.#options
    if (clock.monotonic() < this.#forgetAt) return false
    const areForgotten = await forgetWorkers(database.control)
    if (!areForgotten) this.#forgetAt = clock.monotonic() + FORGET_EVERY_MS
    return areForgotten
  }
}
