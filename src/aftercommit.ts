/**
 * Assembly: builds the parts of an instance. Creating one connects to nothing; emitting needs one connection of the pool and
 * no background work.
 */
import { createHash, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { createCachePart } from './cache/index.ts'
import { createCapture, type DeclaredTables, type WithCaptured, withCapturedEvents } from './capture/index.ts'
import { resolveDatabase } from './database-address.ts'
import { createDeadLetters, pruneLetters } from './dead-letters/index.ts'
import { createDeliveries, createDelivering, diagnoseDeliveries, WORKERS_NUDGE } from './delivery/index.ts'
import { createEmitting } from './emitting.ts'
import { type EventDefinitions, refuseMisspelt } from './events/index.ts'
import { createHooks, type Hooks } from './hooks/index.ts'
import type { Aftercommit, EmittingTransaction } from './instance.ts'
import { createLifetime } from './lifetime.ts'
import { createLive, type Live } from './live/index.ts'
import {
  createFollowing,
  createLog,
  declareStream,
  diagnose,
  readLogSettings,
  readStatus,
  runUpkeep,
  saveLogSettings,
  settledPosition,
} from './log/index.ts'
import { createObservers } from './observers-on-demand.ts'
import { type AftercommitOptions, relayDefaults, withDefaults } from './options.ts'
import {
  addressOf,
  assertSameDatabase,
  createAudit,
  createDatabase,
  createDatabaseTime,
  grantMonitor,
  grantRole,
  migrate,
  migrationScript,
  type Queryable,
  toQueryable,
  toTransaction,
} from './postgres/index.ts'
import { LEASES_CHANGED, LeaseKeeper, type ProcessInfo } from './processes/index.ts'
import { createProjections, type ProjectionHandle, type ProjectionOptions } from './projections/index.ts'
import { createPush } from './push/index.ts'
import { createReceipts } from './receipt/index.ts'
import { createDrainLimit, createGroup, createHealth, createRegistry, noTelemetry } from './runtime/index.ts'
import { createSearch, keepSearch } from './search/index.ts'
import { createSms } from './sms/index.ts'
import {
  assertOpenId,
  createProcessed,
  createRelays,
  createRetention,
  createSubscriptions,
  type Definition,
  NUDGE,
  pruneProcessed,
  refuseInsideHandler,
  SUBSCRIPTION_FREE,
  type SubscriptionOptions,
  toDefinition,
  verify,
} from './subscriptions/index.ts'
import { VERSION } from './version.ts'
import { createSchedules, createWorkflows } from './workflows/index.ts'

export function createAftercommit<
  D extends EventDefinitions = EventDefinitions,
  const C extends DeclaredTables = Record<never, never>,
>(options: AftercommitOptions<D> & { readonly capture?: C | undefined } = {}): Aftercommit<WithCaptured<D, C>> {
  return assemble(options) as unknown as Aftercommit<WithCaptured<D, C>>
}

function assemble<D extends EventDefinitions>(options: AftercommitOptions<D>): Aftercommit<D> {
  const resolved = withDefaults(options)
  const { clock: hostClock, logger } = resolved
  const tracing = resolved.telemetry === noTelemetry ? undefined : resolved.telemetry
  const definitions = withCapturedEvents(options.events, options.capture)
  const address = resolveDatabase(options, process.env)
  const metrics = createRegistry({ clock: hostClock, logger })
  const health = createHealth({ clock: hostClock })
  const database = createDatabase({
    database: address.target,
    ...(options.directDatabase === undefined ? {} : { directDatabase: options.directDatabase }),
    schema: resolved.schema,
    poolSize: resolved.poolSize,
    logger,
    clock: hostClock,
    currentTraceparent: () => (capturing.isUsed() ? tracing?.currentTraceparent() : undefined),
  })
  const capturing = createCapture(database, options.capture ?? {})
  const time = createDatabaseTime({ database, clock: hostClock, logger: database.logger, metrics, health })
  const { clock } = time
  const ground = { database, clock, logger: database.logger, metrics, health }
  const neededFrom = async () => {
    const needed = await Promise.all([subscriptions.neededFrom(), workflowsPart.neededFrom()])
    return needed.reduce<bigint>((lowest, one) => (one !== null && one < lowest ? one : lowest), MAX_POSITION)
  }
  const processId = randomUUID()
  const info: ProcessInfo = {
    process: processId,
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    configHash: hashOf(resolved.schema, definitions),
  }
  const following = createFollowing({
    ...ground,
    info,
    neededFrom,
    eventBytes: resolved.runtime.eventBytes,
    onWord(word) {
      if (word === NUDGE) subscriptions.nudged()
      if (word === NUDGE || word === WORKERS_NUDGE) delivering.nudged()
      if (word === LEASES_CHANGED) processLease.heardOfChange()
      if (word === SUBSCRIPTION_FREE) subscriptions.freed()
    },
    onRing: () => delivering.wake(),
    onLock() {
      processLease.look()
      // Words that were said while nothing was heard.
      subscriptions.nudged()
      delivering.nudged()
    },
    onSchemaTooNew: () => lifetime.outgrown(),
  })
  const processLease = new LeaseKeeper({ ...ground, info, lock: () => following.lock() })
  const tellsDetails = logger.isLevelEnabled?.('debug') ?? true
  const emitting = createEmitting({
    database,
    metrics,
    tracing,
    definitions,
    limits: resolved.log,
    onSchemaTooNew: () => lifetime.outgrown(),
    tellsDetails,
  })
  const drainLimit = createDrainLimit(clock, resolved.runtime.shutdownMs)

  const subscriptions = createSubscriptions({
    ...ground,
    tailer: following.tailer,
    processLease,
    willHear: () => following.bell().mode === 'listening',
    definitions,
    wrapTransaction: emitting.wrap,
    storeStacks: resolved.dlq.storeStacks,
    autoRedrive: resolved.dlq.autoRedrive,
    drainMs: () => drainLimit.leftMs(),
    tellsDetails,
    tracing,
  })
  const delivering = createDelivering({
    ...ground,
    process: processId,
    processLease,
    willHear: () => following.tailer.status().state === 'armed',
    storeStacks: resolved.dlq.storeStacks,
    concurrency: resolved.runtime.maxConcurrency,
    drainMs: () => drainLimit.leftMs(),
  })
  /** Everywhere, and here also where nothing is heard. */
  const nudge = async () => {
    delivering.nudged()
    await subscriptions.nudgeAll()
  }
  const deliveries = createDeliveries({ database, metrics, nudge })
  const deadLetters = createDeadLetters(database, nudge)
  const { cache, actions: cacheActions } = createCachePart({
    options: options.cache ?? {},
    clock,
    metrics,
    addHook: (hook) => hooks.hooks.add(hook),
    append: emitting.internal,
  })
  const observing = createObservers({
    cache: cacheActions,
    tracing,
    database,
    clock,
    logger: database.logger,
    metrics,
    definitions,
    env: process.env,
    delivering,
    subscriptions,
    tellsDetails,
    runtime: resolved.runtime,
    group: resolved.observers.group,
    health,
    process: processId,
    log: () => log,
    deliveries,
    deadLetters,
  })

  const hooks = createHooks({
    ...ground,
    tailer: following.tailer,
    definitions,
    process: processId,
    subscriptions,
    append: emitting.own,
    ring: options.broadcaster?.ring,
    overflow: () =>
      options.runtime?.overflowPolicy ?? observing.inForce()?.settings.runtime.overflowPolicy ?? 'drop_oldest',
  })
  const { push, prune: prunePush } = createPush({ database, refusalOf: observing.refusalOf })
  const sms = createSms({
    logger: database.logger,
    append: emitting.own,
  })
  const livePart = createLive({
    ...ground,
    tailer: following.tailer,
    definitions,
    limits: resolved.log,
    append: emitting.many,
    areSubscriptionsEnabled: () => observing.inForce()?.settings.graphql.subscriptionsEnabled ?? true,
    ensureTailer: () => lifetime.ensureTailer(),
  })
  const workflowsPart = createWorkflows({
    database,
    delivering,
    subscriptions,
    metrics,
    settings: emitting.settings,
    tracing,
    storeStacks: resolved.dlq.storeStacks,
    onEvents: emitting.count,
    nudge,
    log: () => log,
  })
  const schedules = createSchedules({
    database,
    delivering,
    engine: workflowsPart.engine,
    emit: (tx, { type, ...event }) => emitting.one(tx, type, event),
  })
  const processed = createProcessed(database)
  const { register: registerProjection, ...projections } = createProjections(database, subscriptions)
  const relays = createRelays({
    ...ground,
    process: processId,
    defaults: relayDefaults(process.env),
    subscriptions,
    read: ({ on, tenant }: Definition, after, limit) => log.read({ from: after, on, tenant, limit }),
    look: () => following.bell().mode !== 'listening' && following.tailer.ring(),
  })
  const prune = async () => {
    await pruneProcessed(database)
    await relays.prune()
    await workflowsPart.prune()
    await prunePush()
    await keepSearch(database)
    await pruneLetters(database.control, resolved.dlq.retentionSeconds)
    await capturing.mend()
  }
  const background = createGroup({
    name: 'subscription upkeep',
    services: [
      time.service,
      relays.service,
      createRetention({ clock, logger: database.logger, metrics, health, prune }),
    ],
    logger: database.logger,
  })

  const lifetime = createLifetime({
    database,
    address,
    health,
    drainLimit,
    following,
    processLease,
    background,
    observing,
    schedules,
    hooks,
    subscriptions,
    relays,
    delivering,
    live: livePart,
    learn: capturing.learn,
  })
  const log = createLog<D>({
    database,
    definitions,
    tailer: following.tailer,
    wake: async () => (await readLogSettings(database)).wake,
    ensureTailer: () => lifetime.ensureTailer(),
  })

  const append = async (db: Queryable, first: unknown, event: unknown): Promise<never> => {
    const asked = assertSameDatabase(database, db)
    if (asked) await asked
    return emitting.through(db, first, event) as Promise<never>
  }
  /** A typing mistake in `on` would choose nothing, in silence. */
  function withKnownNames<O extends { readonly id: string; readonly on?: readonly string[] | undefined }>(
    what: string,
    asked: O,
  ): O {
    const names = Array.isArray(asked.on) ? asked.on : []
    refuseMisspelt(`${what} "${asked.id}"`, names, definitions, workflowsPart.workflows.registered())
    return asked
  }

  const instance: Aftercommit<D> = {
    async migrate({
      grantEmit: emitters = [],
      grantRun: runners = [],
      grantMonitor: monitors = [],
      grantRead: readers = [],
      adoptStreams = false,
      onCapture,
      ...request
    } = {}) {
      const result = await migrate(database, request)
      for (const type of definitions?.streams ?? []) await declareStream(database, type, adoptStreams)
      for (const role of emitters) await grantRole(database, role, 'emit')
      for (const role of runners) await grantRole(database, role, 'run')
      for (const role of monitors) await grantMonitor(database, role)
      for (const role of readers) await grantRole(database, role, 'read')
      // What the options do not mention stays as somebody else has set it.
      const { wake, retentionSeconds, maxPayloadBytes, maxDepth, maxNesting } = resolved.log
      const given = options.log ?? {}
      await saveLogSettings(database, {
        ...(wake === undefined ? {} : { wake }),
        ...(retentionSeconds === undefined ? {} : { retentionSeconds }),
        ...(given.maxPayload === undefined ? {} : { maxPayloadBytes }),
        ...(given.maxDepth === undefined ? {} : { maxDepth }),
        ...(given.maxNesting === undefined ? {} : { maxNesting }),
      })
      // A database that is migrated up to an older version does not know captured tables.
      const captured = request.targetVersion === undefined ? await capturing.reconcile(onCapture) : []
      return { ...result, captured }
    },
    migrationScript: ({ grantEmit: emitters = [], grantRun: runners = [] } = {}) =>
      migrationScript(database, [
        ...emitters.map((role) => ({ role, right: 'emit' as const })),
        ...runners.map((role) => ({ role, right: 'run' as const })),
      ]),
    async transaction(fn, transactionOptions) {
      refuseInsideHandler(database)
      return database.transaction((tx) => fn(emitting.wrap(tx) as EmittingTransaction<D>), transactionOptions)
    },
    async emit(tx: unknown, first: unknown, event?: unknown): Promise<never> {
      return append(toTransaction(tx, database.schema, 'call ac.emitNow() to commit at once'), first, event)
    },
    async emitNow(...given: unknown[]): Promise<never> {
      const hasSession = typeof given[0] !== 'string' && !Array.isArray(given[0])
      const [session, first, event] = hasSession ? given : [database, ...given]
      return append(toQueryable(session, database.schema), first, event)
    },
    emitAuth: hooks.emitAuth,
    capture: capturing.capture,
    log,
    status: () => readStatus({ database, address: () => addressOf(address.target), logStatus: () => log.status() }),
    doctor: () =>
      diagnose({
        database,
        neutralConfigHash: hashOf(resolved.schema, undefined),
        more: async () => [
          ...(await diagnoseDeliveries(database, clock)),
          ...(await observing.diagnose()),
          ...(await capturing.diagnose()),
        ],
      }),
    subscribe: (subscription) =>
      subscriptions.register(
        toDefinition(withKnownNames('Subscription', assertOpenId(subscription as SubscriptionOptions))),
      ),
    subscriptions: { get: subscriptions.get, list: subscriptions.list },
    processed,
    relay: (relay) => relays.register(withKnownNames('Relay', relay)),
    project: <State>(projection: ProjectionOptions<never, State>) =>
      registerProjection(
        withKnownNames('Projection', projection as unknown as ProjectionOptions),
      ) as ProjectionHandle<State>,
    projections,
    cache,
    observers: observing.observers,
    push,
    sms,
    hooks: hooks.hooks as unknown as Hooks<D>,
    broadcaster: hooks.broadcaster,
    live: livePart.live as unknown as Live<D>,
    workflows: workflowsPart.workflows,
    schedules: { add: schedules.add, remove: schedules.remove, list: schedules.list },
    search: { ...createSearch(database), reindex: observing.reindex },
    audit: createAudit(database),
    deadLetters,
    deliveries,
    receipt: createReceipts({ database, clock, log, deliveries, deadLetters }),
    drain: lifetime.drain,
    start: lifetime.start,
    stop: lifetime.stop,
    metrics: () => metrics.text(),
    health: () => health.check(),
    verify: async (verifyOptions = {}) => verify(database, await settledPosition(database), verifyOptions.onProgress),
    async upkeep() {
      const report = await runUpkeep({ database, logger, neededFrom })
      await prune()
      return report
    },
  }
  return instance
}

/** Nobody needs anything until subscriptions say so. */
const MAX_POSITION = 2n ** 63n - 1n

function hashOf(schema: string, definitions: EventDefinitions | undefined): string {
  const names = definitions?.names.map((name) => [name, definitions.get(name)?.version]) ?? []
  return createHash('sha256')
    .update(JSON.stringify([schema, names]))
    .digest('hex')
    .slice(0, 16)
}
