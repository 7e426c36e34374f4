/** The delivery stage of one process: adds deliveries, registers handlers, and runs first attempts and rows. */
import { placeMarkedLetters } from '../dead-letters/index.ts'
import { stringifyJson } from '../events/index.ts'
import { type Database, isTransaction, type Queryable } from '../postgres/index.ts'
import type { ProcessLease } from '../processes/index.ts'
import { type Clock, createGroup, type Health, type Logger, type Registry, type Service } from '../runtime/index.ts'
import type { NewDelivery, Work } from './delivery.ts'
import { createDestinations } from './destinations.ts'
import { createReactions, type Reactions } from './first-attempts.ts'
import { InFlight } from './in-flight.ts'
import { createLanes } from './lanes.ts'
import { Lease } from './lease.ts'
import type { TakenAlong } from './outcome-writer.ts'
import type { Reservation } from './reservations.ts'
import { type AddedRow, addDeliveries, type ClaimedRow } from './statements.ts'
import { createSurplus } from './surplus.ts'
import { Worker } from './worker.ts'

export interface DeliveryOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly process: string
  readonly processLease: ProcessLease
  readonly willHear: () => boolean
  readonly storeStacks: boolean
  readonly concurrency: number
  /** How long `stop` may still wait for what is under way. */
  readonly drainMs: () => number
}

export interface Delivering {
  readonly service: Service
  /** Adds work in the caller's transaction; without one, at once. What is unique and there already is left alone. */
  add(db: Queryable, deliveries: readonly NewDelivery[]): Promise<bigint[]>
  /** What this process can do from now on. */
  register(work: Work): void
  unregister(kind: string, name: string): void
  /** First attempts at what events ask for. */
  reactions(): Reactions
  /** For rows that somebody writes as claimed by this process, to begin them without a claim; see reservations.ts. */
  readonly claiming: Claiming
  /** New work may be there: the bell rang, the log moved, or somebody here added it. */
  wake(): void
  /** Somebody changed something that workers must know. */
  nudged(): void
  /** Nothing is due here and nothing under way, as far as was seen at the last look. */
  readonly quiet: boolean
  /** Something is due that only waits for a limit or a rest of its destination, or is redriven and not due yet. */
  isBehind(): Promise<boolean>
}

export interface Claiming {
  reserve(kind: string, names: readonly string[]): Reservation | undefined
  begin(worker: string, token: bigint, rows: readonly ClaimedRow[]): Promise<void>
  doubt(token: bigint): void
  cancel(token: bigint): void
  /** Rows of ended work, for a transaction that is written anyway to delete them. */
  takeAlong(most: number): TakenAlong | undefined
}

export function createDelivering(options: DeliveryOptions): Delivering {
  const { database, clock, logger, metrics, health } = options
  const lanes = createLanes(database.control)
  /** Live workers of other processes. */
  let others = 0
  const inFlight = new InFlight({
    clock,
    most: options.concurrency,
    surplus: createSurplus({
      db: database.control,
      worker: () => lease.worker,
      others: () => others,
      places: options.concurrency,
    }),
  })
  const lease = new Lease({
    database,
    clock,
    logger,
    metrics,
    health,
    process: options.process,
    processLease: options.processLease,
    willHear: options.willHear,
    onLost: () => worker.lose(),
    onChange: () => worker.endCancelled(),
    onNews(news, askedAt) {
      others = news.others
      destinations.learn(news, askedAt)
      if (news.marked) void place()
      worker.wake()
    },
  })
  const destinations = createDestinations({
    database,
    clock,
    logger,
    lease,
    inFlight,
    onPause: () => lease.nudge(),
    onTrouble: (destination) => worker.leaveAlone(destination),
  })
  const worker = new Worker({
    destinations,
    inFlight,
    database,
    clock,
    logger,
    metrics,
    health,
    lanes,
    lease,
    storeStacks: options.storeStacks,
    drainMs: options.drainMs,
    willHear: options.willHear,
  })

  /** Marked letters become work again; whoever is first does it. */
  async function place(): Promise<void> {
    try {
      while ((await placeMarkedLetters(database.control, 100)) > 0) worker.wake()
    } catch (error) {
      logger.warn({ err: error }, 'dead letters were not made work again; it is tried again')
    }
  }

  async function toRow(delivery: NewDelivery): Promise<AddedRow> {
    const { kind, name, destination = '', tenant = '', priority = 0 } = delivery
    return {
      lane: await lanes.numberOf({ kind, name, destination, tenant, priority }),
      owner: delivery.owner,
      key: delivery.key ?? null,
      ordered: delivery.ordered ?? false,
      uniqueKey: delivery.uniqueKey ?? null,
      eventId: delivery.eventId ?? null,
      payload: stringifyJson(delivery.payload, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'payload' }),
      runAt: delivery.runAt ?? null,
      delayMs: delivery.delayMs ?? 0,
    }
  }

  const group = createGroup({ name: 'delivery', services: [lease, worker], logger })
  let started = false

  /** A process that can do nothing does not even look. */
  const service: Service = {
    name: group.name,
    get state() {
      return group.state
    },
    async start() {
      started = true
      if (worker.isAble) await group.start()
    },
    async stop() {
      started = false
      await group.stop()
    },
  }

  return {
    service,
    async add(db, deliveries) {
      const rows: AddedRow[] = []
      for (const delivery of deliveries) rows.push(await toRow(delivery))
      const added = await addDeliveries(db, rows)
      if (isTransaction(db)) db.onCommit(() => worker.wake())
      else worker.wake()
      return added.map(({ id }) => id)
    },
    register(work) {
      worker.register(work)
      if (!started || group.state === 'running') return
      group.start().catch((error) => logger.error({ err: error }, 'deliveries were not started'))
    },
    unregister: (kind, name) => worker.unregister(kind, name),
    reactions: () =>
      createReactions({
        db: database.control,
        clock,
        lease,
        outcomes: worker.outcomes,
        inFlight,
        isAble: () => worker.isAble,
        onRow: (lane, delayMs) => worker.added(lane, delayMs),
      }),
    claiming: {
      reserve: (kind, names) => worker.reserve(kind, names),
      begin: (name, token, rows) => worker.begin(name, token, rows),
      doubt: (token) => worker.doubt(token),
      cancel: (token) => worker.cancel(token),
      takeAlong: (most) => worker.takeAlong(most),
    },
    wake: () => worker.wake(),
    nudged: () => lease.nudge(),
    get quiet() {
      return !worker.isAble || worker.quiet
    },
    isBehind: async () => worker.isAble && (await worker.isBehind()),
  }
}
