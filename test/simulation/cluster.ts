/** The processes of a run, each with the production keeper and runners, and their end and restart. */
import { LeaseKeeper } from '../../src/processes/index.ts'
import { createHealth, createRegistry, silentLogger } from '../../src/runtime/index.ts'
import { type CallContext, type Definition, type HandlerContext, toDefinition } from '../../src/subscriptions/index.ts'
import { Keeper } from '../../src/subscriptions/keeper.ts'
import { createSubscriptionMetrics } from '../../src/subscriptions/metrics.ts'
import type { Store } from './database/store.ts'
import type { Handlers } from './handlers.ts'
import type { Ledger } from './ledger.ts'
import { type Log, SimulatedTailer } from './log.ts'
import { createObserver, type SimulatedObserver } from './observer.ts'
import { Path } from './path.ts'
import type { Plan } from './plan.ts'
import { Process } from './process.ts'
import type { World } from './world.ts'

export interface Running {
  readonly process: Process
  readonly path: Path
  readonly tailer: SimulatedTailer
  readonly processLease: LeaseKeeper
  readonly keeper: Keeper
  readonly observers: readonly SimulatedObserver[]
}

export interface ClusterParts {
  readonly world: World
  readonly store: Store
  readonly log: Log
  readonly plan: Plan
  readonly ledgers: readonly Ledger[]
  readonly handlers: () => Handlers
  readonly isHealed: () => boolean
}

export class Cluster {
  readonly #parts: ClusterParts
  /** By place: one process runs in each. */
  readonly places: (Running | undefined)[]
  #started = 0

  constructor(parts: ClusterParts) {
    this.#parts = parts
    this.places = Array.from({ length: parts.plan.processes }, () => undefined)
  }

  get running(): Running[] {
    return this.places.filter((one) => one !== undefined)
  }

  startAll(): void {
    for (let place = 0; place < this.places.length; place++) this.#start(place)
  }

  /** `lockMs`: for so long the server keeps the connections of a process that is gone. */
  kill(process: Process, lockMs: number): void {
    const place = this.places.findIndex((one) => one?.process === process)
    if (place < 0) return
    process.world.note(() => `${process.name} is killed`)
    const { path } = this.places[place]!
    process.die(lockMs)
    path.cut(true)
    for (const ledger of this.#parts.ledgers) ledger.died(process.name)
    this.places[place] = undefined
    process.world.after(process.world.random.between(10, 3_000), () => this.#start(place))
  }

  /** As a rolling restart does it: subscriptions first, so that nothing more is asked of the workers. */
  stop({ process, processLease, keeper, observers }: Running): void {
    process.world.note(() => `${process.name} is asked to stop`)
    const gone = () => this.kill(process, 0)
    const stopped = keeper.stop().catch(() => {})
    const stopObserver = async ({ delivering, processLease: lease }: SimulatedObserver) => {
      await delivering.service.stop()
      await lease.stop()
    }
    stopped.then(() => Promise.all([processLease.stop(), ...observers.map(stopObserver)])).then(gone, gone)
  }

  /** Processes with an open connection hear it after a moment. */
  tell(hears: (one: SimulatedObserver) => void): void {
    for (const { process, observers } of this.running) {
      if (process.world.now < process.cutUntil) continue
      process.after(process.world.random.next() * 20, () => {
        if (process.lock.holds) for (const one of observers) hears(one)
      })
    }
  }

  #start(place: number): void {
    const { world, store, log, plan, isHealed } = this.#parts
    const process = new Process(`p${place}.${++this.#started}`, world, store)
    const path = new Path({ process, store, plan: plan.path, isHealed, kill: (one) => this.kill(one, 50) })
    const tailer = new SimulatedTailer(log, path, process, plan.path.recent)
    const { clock } = process
    const logger = silentLogger
    const registry = createRegistry({ clock })
    const metricsOf = createSubscriptionMetrics(registry)
    const { database } = path
    const ground = { database, clock, logger, metrics: registry, health: createHealth({ clock }) }
    const processLease = new LeaseKeeper({
      ...ground,
      info: { process: process.name, host: 'simulated', pid: 1, version: '0', configHash: '0' },
      lock: () => process.lock,
    })
    const keeper = new Keeper({
      ...ground,
      processLease,
      willHear: () => false,
      autoRedrive: undefined,
      drainMs: () => 5_000,
      place: async () => 1n,
      runnerParts: ({ id }) => ({
        database,
        tailer: tailer as never,
        clock,
        logger,
        tellsDetails: false,
        metrics: metricsOf(id),
        definitions: undefined,
        wrapTransaction: (tx) => tx,
        limit: undefined,
        storeStacks: false,
      }),
    })
    const observers: SimulatedObserver[] = []
    for (const ledger of this.#parts.ledgers) {
      const termOf = () => Number(keeper.runner(ledger.plan.id)!.lease.term)
      if (ledger.plan.actions === 0) {
        keeper.add(this.#definePlain(ledger, process, termOf))
        continue
      }
      const observer = createObserver({ process, path, ledger, handlers: this.#parts.handlers, termOf })
      observers.push(observer)
      keeper.add(this.#defineObserver(ledger, observer))
    }
    this.places[place] = { process, path, tailer, processLease, keeper, observers }
    world.note(() => `${process.name} starts`)
    void processLease.start()
    for (const { delivering, processLease: lease } of observers) {
      void lease.start()
      void delivering.service.start()
    }
    void keeper.start()
  }

  #definePlain(ledger: Ledger, process: Process, termOf: () => number): Definition {
    const { store, handlers } = this.#parts
    const { id, onFailure, concurrency, checkpoint } = ledger.plan
    return toDefinition(
      {
        id,
        onFailure,
        concurrency,
        checkpoint,
        retry: { maxAttempts: 3, initialDelay: '50ms', maxDelay: '1s' },
        timeout: '6s',
        handle: (event, context) => handlers().handle(process, ledger, termOf(), event, context),
      },
      store.isOff('order of keys') ? { keyOf: (event) => event.id } : {},
    )
  }

  /** As the engine of observers defines its subscription. */
  #defineObserver({ plan }: Ledger, { executor, begin }: SimulatedObserver): Definition {
    const toCall = (context: HandlerContext) => ({
      owner: context as CallContext,
      leaving: (context as CallContext).leaving,
    })
    return toDefinition(
      {
        id: plan.id,
        concurrency: plan.concurrency,
        timeout: '3d',
        onFailure: 'skip',
        handle: (event, context) => executor.handle(event, toCall(context)),
      },
      {
        kind: 'observers',
        begin,
        handleSuspect: (event, context) => executor.handle(event, { ...toCall(context), isSuspect: true }),
        keyOf: (event) => event.id,
        mostUnsaved: this.#parts.store.isOff('bound') ? Number.POSITIVE_INFINITY : plan.mostUnsaved,
        leaves: true,
      },
    )
  }
}
