/**
 * Owns what this process may own. One loop for all subscriptions: it takes free leases, renews its own in one statement,
 * notices pauses, newer generations and marked letters, and starts and ends runners accordingly.
 *
 *   standby ──free, or the owner is gone──▶ running ──lost, paused, newer generation──▶ standby
 *                                             └── stopped by its policy ──▶ standby until somebody resumes it
 */
import { redriveByItself, selectMarkedOwners } from '../dead-letters/index.ts'
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
  withTimeout,
} from '../runtime/index.ts'
import type { Definition } from './definition.ts'
import {
  LEASE_SECONDS,
  type Lease,
  type Renewed,
  releaseLease,
  renewLeases,
  selectLockless,
  takeLeases,
} from './lease-statements.ts'
import type { RunEnd, RunParts } from './run-state.ts'
import { Runner } from './runner.ts'

export interface KeeperOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly process: string
  /** Dead letters that are tried again by themselves. */
  readonly autoRedrive: { readonly afterMs: number; readonly max: number } | undefined
  readonly lock: () => ProcessLock
  /** How long `stop` may still wait for what is under way. */
  readonly drainMs: () => number
  /** Writes what is registered in the process into the database; answers its generation. */
  readonly place: (definition: Definition) => Promise<bigint>
  readonly runnerParts: (definition: Definition) => Omit<RunParts, 'mayRun'>
}

export interface Registered {
  readonly definition: Definition
  readonly generation: bigint
}

interface Running {
  readonly runner: Runner
  readonly ended: Promise<void>
}

const STANDBY_MS = 1_000
const RENEW_MS = 5_000
/** An owner without its lock for this long is gone; one that merely reconnects is not. */
const GONE_AFTER_MS = 1_000
/** After this long without a renewal nothing new is begun: the lease may be somebody else's. */
const SAFE_MS = (LEASE_SECONDS - 3) * 1_000
const REST_AFTER_END_MS: Record<RunEnd, number> = { stopped: 0, lost: 1_000, 'needs newer code': 30_000, halted: 2_000 }

export class Keeper implements Service {
  readonly name = 'subscriptions'
  readonly #options: KeeperOptions
  readonly #loop: Loop
  readonly #unplaced = new Map<string, Definition>()
  readonly #registered = new Map<string, Registered>()
  readonly #running = new Map<string, Running>()
  /** Not before this time, after an end that would only repeat itself. */
  readonly #restUntil = new Map<string, number>()
  /** Owners seen without their lock, and since when. */
  readonly #lockless = new Map<string, number>()
  #renewedAt = 0
  #dueRenewal = 0
  #forced = new Set<string>()
  /** Those of which was said that somebody else has them. */
  readonly #elsewhere = new Set<string>()
  #stopping = false

  constructor(options: KeeperOptions) {
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

  start(): Promise<void> {
    this.#stopping = false
    return this.#loop.start()
  }

  /**
   * Ends the runners first: what is under way finishes and is in the checkpoints. What outlasts the limit is aborted and not
   * counted: whoever takes the lease next handles it again.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    const { clock, drainMs, logger } = this.#options
    const running = [...this.#running.values()]
    for (const { runner } of running) runner.end('stopped')
    const ended = Promise.all(running.map((run) => run.ended))
    try {
      await withTimeout(ended, drainMs(), clock, 'Handlers were still under way')
    } catch (error) {
      const subscriptions = [...this.#running.keys()]
      logger.error({ subscriptions }, 'handlers outlasted the drain limit; their events are handled again')
      for (const { runner } of this.#running.values()) runner.end('lost')
      throw error
    } finally {
      await this.#loop.stop()
    }
  }

  addPlaced(registered: Registered): void {
    this.#registered.set(registered.definition.id, registered)
    if (registered.definition.instances === 'single') this.#forced.add(registered.definition.id)
    this.#loop.wake()
  }

  /** Placed in the database by the loop, which tries again for as long as that fails. */
  add(definition: Definition): void {
    this.#unplaced.set(definition.id, definition)
    this.#loop.wake()
  }

  /** Takes a subscription out of this process and waits until it has ended here. */
  async remove(id: string): Promise<void> {
    this.#unplaced.delete(id)
    this.#registered.delete(id)
    const running = this.#running.get(id)
    running?.runner.end('stopped')
    await running?.ended
  }

  /** Something changed in the database: a pause, a seek, a marked letter. */
  nudge(): void {
    this.#dueRenewal = 0
    this.#restUntil.clear()
    this.#loop.wake()
  }

  runner(id: string): Runner | undefined {
    return this.#running.get(id)?.runner
  }

  runners(): Runner[] {
    return [...this.#running.values()].map(({ runner }) => runner)
  }

  async #run(context: LoopContext): Promise<void> {
    for (;;) {
      await this.#placeNew()
      const now = this.#options.clock.monotonic()
      if (this.#options.lock().lacks) this.#giveUp()
      else if (this.#running.size > 0 && now >= this.#dueRenewal) await this.#renew()
      await this.#takeFree()
      const standby = this.#running.size < this.#registered.size || this.#unplaced.size > 0
      const toRenewal = Math.max(10, this.#dueRenewal - this.#options.clock.monotonic())
      await context.wait(standby ? STANDBY_MS : this.#running.size > 0 ? toRenewal : RENEW_MS)
    }
  }

  async #placeNew(): Promise<void> {
    for (const definition of [...this.#unplaced.values()]) {
      const generation = await this.#options.place(definition)
      // Replaced or removed while it was placed: whatever took its place has its turn.
      if (this.#unplaced.get(definition.id) !== definition) continue
      this.#unplaced.delete(definition.id)
      this.addPlaced({ definition, generation })
    }
  }

  /** A process that cannot prove that it is alive does no work, so it must not keep others from it by renewing. */
  #giveUp(): void {
    for (const { runner } of this.#running.values()) if (!runner.lost) runner.end('lost')
  }

  async #renew(): Promise<void> {
    const { database, clock, process } = this.#options
    const held = [...this.#running.values()].map(({ runner }) => runner.lease)
    const sentAt = clock.monotonic()
    // Before it is asked: whoever nudges meanwhile may have changed what the answer does not know of yet.
    this.#dueRenewal = sentAt + RENEW_MS
    const renewed = new Map((await renewLeases(database.control, process, held)).map((row) => [row.id, row]))
    this.#renewedAt = sentAt
    if (this.#options.autoRedrive) {
      await redriveByItself(database.control, 'subscription', [...renewed.keys()], this.#options.autoRedrive)
    }
    const marked = new Set(await selectMarkedOwners(database.control, [...renewed.keys()]))
    for (const { id } of held) {
      const row = renewed.get(id)
      const runner = this.#running.get(id)?.runner
      if (!runner) continue
      if (row === undefined) runner.end('lost')
      else if (!mayHave(row, this.#registered.get(id))) runner.end('stopped')
      else if (marked.has(id)) runner.nudge()
    }
  }

  async #takeFree(): Promise<void> {
    const { database, clock, process, logger } = this.#options
    const now = clock.monotonic()
    const lock = this.#options.lock()
    // A process that should hold its lock and does not would be taken for gone: it takes nothing.
    if (this.#stopping || (lock.possible && !lock.holds)) return
    const wanted = [...this.#registered.values()].filter(
      ({ definition: { id } }) => !this.#running.has(id) && (this.#restUntil.get(id) ?? 0) <= now,
    )
    if (wanted.length === 0) return
    const gone = await this.#findGone(wanted.map(({ definition }) => definition.id))
    const toWanted = ({ definition, generation }: Registered) => ({ id: definition.id, generation })
    const forced = wanted.filter(({ definition }) => this.#forced.has(definition.id))
    const others = wanted.filter(({ definition }) => !this.#forced.has(definition.id))
    const sentAt = clock.monotonic()
    if (this.#running.size === 0) this.#dueRenewal = sentAt + RENEW_MS
    const leases = [
      ...(others.length > 0
        ? await takeLeases(database.control, process, others.map(toWanted), gone, { force: false, locked: lock.holds })
        : []),
      ...(forced.length > 0
        ? await takeLeases(database.control, process, forced.map(toWanted), gone, { force: true, locked: lock.holds })
        : []),
    ]
    if (this.#running.size === 0) this.#renewedAt = sentAt
    // Whoever paused it meanwhile saw no owner, so that nobody else would end what begins here.
    const renewed = leases.length === 0 ? [] : await renewLeases(database.control, process, leases).catch(() => [])
    for (const lease of leases) {
      const row = renewed.find(({ id }) => id === lease.id)
      const asked = wanted.find(({ definition }) => definition.id === lease.id)
      // Replaced or removed while it was asked for: whatever took its place has its turn.
      const isAsked = this.#registered.get(lease.id) === asked
      if (isAsked && row && mayHave(row, asked) && !this.#stopping) this.#begin(asked!, lease)
      else await releaseLease(database.control, lease, lease.clean).catch(() => {})
    }
    const taken = new Set(leases.map(({ id }) => id))
    for (const { definition } of wanted) {
      if (taken.has(definition.id)) this.#elsewhere.delete(definition.id)
      else if (!this.#elsewhere.has(definition.id)) {
        this.#elsewhere.add(definition.id)
        logger.info({ subscription: definition.id }, 'lease held elsewhere')
      }
    }
  }

  async #findGone(ids: readonly string[]): Promise<string[]> {
    const { database, clock, process } = this.#options
    const lockless = (await selectLockless(database.control, ids)).filter((owner) => owner !== process)
    const now = clock.monotonic()
    for (const owner of this.#lockless.keys()) if (!lockless.includes(owner)) this.#lockless.delete(owner)
    for (const owner of lockless) if (!this.#lockless.has(owner)) this.#lockless.set(owner, now)
    return lockless.filter((owner) => now - this.#lockless.get(owner)! >= GONE_AFTER_MS)
  }

  #begin({ definition }: Registered, lease: Lease): void {
    this.#forced.delete(lease.id)
    const { runnerParts, logger, database, clock } = this.#options
    const runner = new Runner(definition, lease, {
      ...runnerParts(definition),
      mayRun: () => this.#mayRun(),
    })
    const ended = runner
      .run()
      .catch((error) => {
        logger.error({ subscription: lease.id, err: error }, 'subscription failed; it is taken up again')
        return { end: 'lost' as const, clean: false }
      })
      .then(async ({ end, clean }) => {
        this.#running.delete(lease.id)
        const restMs = REST_AFTER_END_MS[end]
        if (restMs > 0) this.#restUntil.set(lease.id, clock.monotonic() + restMs)
        await releaseLease(database.control, lease, clean).catch(() => {})
        logger.info({ subscription: lease.id, end }, 'lease released')
        this.#loop.wake()
      })
    this.#running.set(lease.id, { runner, ended })
  }

  #mayRun(): boolean {
    const lock = this.#options.lock()
    if (lock.possible && !lock.holds) return false
    return this.#options.clock.monotonic() - this.#renewedAt < SAFE_MS
  }
}

/** By what was read when the lease was renewed. */
function mayHave({ paused, status, generation }: Renewed, registered: Registered | undefined): boolean {
  return !paused && status !== 'stopped' && generation === registered?.generation
}
