/**
 * Owns what this process may own, under the lease of the process. One loop for all subscriptions: it takes free ones,
 * notices pauses, newer generations and marked letters, and starts and ends runners accordingly.
 *
 *   standby ──free, or the owner is gone──▶ running ──lost, paused, newer generation──▶ standby
 *                                             └── stopped by its policy ──▶ standby until an operator resumes it
 */
import { redriveByItself, selectMarkedOwners } from '../dead-letters/index.ts'
import { classify, type Database } from '../postgres/index.ts'
import type { ProcessLease } from '../processes/index.ts'
import {
  createLoop,
  type Loop,
  type LoopContext,
  type PartOptions,
  type Service,
  type ServiceState,
  withTimeout,
} from '../runtime/index.ts'
import type { Definition } from './definition.ts'
import {
  type Lease,
  type Release,
  releaseLease,
  type Standing,
  selectStandings,
  takeLeases,
} from './lease-statements.ts'
import type { RunEnd, RunParts } from './run-state.ts'
import { Runner } from './runner.ts'

export interface KeeperOptions extends PartOptions {
  readonly database: Database
  readonly processLease: ProcessLease
  /** Dead letters that are tried again by themselves. */
  readonly autoRedrive: { readonly afterMs: number; readonly max: number } | undefined
  /** Whether this process hears of changes; if not, it looks for them. */
  readonly willHear: () => boolean
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

/** How often a process looks how its subscriptions stand, and for free ones: a notification tells of both at once. */
const HEARING_MS = 15_000
/** Where nothing is heard. */
const DEAF_MS = 5_000
const DEAF_STANDBY_MS = 1_000
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
  #dueLook = 0
  #forced = new Set<string>()
  /** Subscriptions already logged as held by another process. */
  readonly #elsewhere = new Set<string>()
  /** Leases that this process has or had: what it held under them was not left by a death. */
  readonly #owners = new Set<string>()
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
    options.processLease.watch({
      onHeld: () => this.#loop.wake(),
      onLost: () => this.#giveUp(),
      onFreed: () => this.#loop.wake(),
      standsBy: () => this.#standsBy && !this.#stopping,
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
    this.#dueLook = 0
    this.#restUntil.clear()
    this.#loop.wake()
  }

  /** A subscription was given back somewhere. */
  freed(): void {
    if (this.#standsBy) this.#loop.wake()
  }

  runner(id: string): Runner | undefined {
    return this.#running.get(id)?.runner
  }

  runners(): Runner[] {
    return [...this.#running.values()].map(({ runner }) => runner)
  }

  get #standsBy(): boolean {
    return this.#running.size < this.#registered.size
  }

  async #run(context: LoopContext): Promise<void> {
    const { clock, processLease } = this.#options
    for (;;) {
      await this.#placeNew()
      const owner = processLease.current
      if (owner !== undefined && this.#running.size > 0 && clock.monotonic() >= this.#dueLook)
        await this.#lookAtOwn(owner)
      await this.#takeFree()
      await context.wait(this.#restMs())
    }
  }

  /** Until something is due here without a word from others. */
  #restMs(): number {
    const now = this.#options.clock.monotonic()
    const lookMs = this.#options.willHear() ? HEARING_MS : this.#standsBy ? DEAF_STANDBY_MS : DEAF_MS
    const due = [...this.#restUntil.values()].filter((until) => until > now)
    if (this.#running.size > 0 && this.#options.processLease.current !== undefined) due.push(this.#dueLook)
    return Math.max(10, Math.min(lookMs, ...due.map((at) => at - now)))
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

  /** The lease of the process is lost, and each of its subscriptions with it. */
  #giveUp(): void {
    for (const { runner } of this.#running.values()) if (!runner.lost) runner.end('lost')
    this.#loop.wake()
  }

  async #lookAtOwn(owner: string): Promise<void> {
    const { database, clock, willHear } = this.#options
    const held = [...this.#running.values()].map(({ runner }) => runner.lease)
    // Before the question: a change that is told meanwhile may be younger than the answer.
    this.#dueLook = clock.monotonic() + (willHear() ? HEARING_MS : DEAF_MS)
    const standings = new Map((await selectStandings(database.control, owner, held)).map((row) => [row.id, row]))
    if (this.#options.autoRedrive) {
      await redriveByItself(database.control, 'subscription', [...standings.keys()], this.#options.autoRedrive)
    }
    const marked = new Set(await selectMarkedOwners(database.control, [...standings.keys()]))
    for (const { id, term } of held) {
      const row = standings.get(id)
      const runner = this.#running.get(id)?.runner
      if (runner?.lease.term !== term) continue
      if (row === undefined) runner.end('lost')
      else if (!mayHave(row, this.#registered.get(id))) runner.end('stopped')
      else if (marked.has(id)) runner.nudge()
    }
  }

  async #takeFree(): Promise<void> {
    const { database, clock, processLease, logger } = this.#options
    const now = clock.monotonic()
    const owner = processLease.current
    if (this.#stopping || owner === undefined) return
    const wanted = [...this.#registered.values()].filter(
      ({ definition: { id } }) => !this.#running.has(id) && (this.#restUntil.get(id) ?? 0) <= now,
    )
    if (wanted.length === 0) return
    const toWanted = ({ definition, generation }: Registered) => ({ id: definition.id, generation })
    const forced = wanted.filter(({ definition }) => this.#forced.has(definition.id))
    const others = wanted.filter(({ definition }) => !this.#forced.has(definition.id))
    this.#owners.add(owner)
    const leases: Lease[] = []
    for (const [some, force] of [[others, false] as const, [forced, true] as const]) {
      if (some.length > 0)
        leases.push(
          ...(await takeLeases(database.control, owner, some.map(toWanted), { force, former: [...this.#owners] })),
        )
    }
    // A pause that was asked for meanwhile saw no owner, so nobody else would end what begins here.
    const standings = leases.length === 0 ? [] : await selectStandings(database.control, owner, leases).catch(() => [])
    for (const lease of leases) {
      const row = standings.find(({ id }) => id === lease.id)
      const asked = wanted.find(({ definition }) => definition.id === lease.id)
      // Replaced or removed while it was asked for: its successor has its turn.
      // A lease that this process lost while it was asked for would leave a runner that may begin nothing.
      const isAsked = this.#registered.get(lease.id) === asked && processLease.current === owner
      if (isAsked && row && mayHave(row, asked) && !this.#stopping) this.#begin(asked!, lease, owner)
      else await this.#release(lease, lease)
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

  async #release(lease: Lease, how: Release): Promise<void> {
    const { database } = this.#options
    await releaseLease(database.control, lease, { ...how, channel: database.schemaName.channel }).catch(() => {})
  }

  #begin({ definition }: Registered, lease: Lease, owner: string): void {
    this.#forced.delete(lease.id)
    const { runnerParts, logger, clock, processLease } = this.#options
    const runner = new Runner(definition, lease, {
      ...runnerParts(definition),
      mayRun: () => processLease.current === owner,
    })
    const ended = runner
      .run()
      .catch((error) => {
        logger.error({ subscription: lease.id, err: error }, 'subscription failed; it is taken up again')
        return { end: 'lost' as const, clean: false, failed: classify(error) === 'permanent' }
      })
      .then(async ({ end, ...release }) => {
        this.#running.delete(lease.id)
        const restMs = REST_AFTER_END_MS[end]
        if (restMs > 0) this.#restUntil.set(lease.id, clock.monotonic() + restMs)
        await this.#release(lease, release)
        logger.info({ subscription: lease.id, end }, 'lease released')
        this.#loop.wake()
      })
    this.#running.set(lease.id, { runner, ended })
  }
}

/** By what was read last. */
function mayHave({ paused, status, generation }: Standing, registered: Registered | undefined): boolean {
  return !paused && status !== 'stopped' && generation === registered?.generation
}
