/**
 * Observers at work: what was checked becomes works, limits and one subscription. Replacing a configuration ends what
 * reads under the old one first, so that an event is judged by one configuration and not by two.
 */
import { createHash } from 'node:crypto'
import type { Rate, Settings } from '../configuration/index.ts'
import { type Delivering, type DestinationLimits, saveLimits, type Work } from '../delivery/index.ts'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, settledPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Clock, Logger, Registry } from '../runtime/index.ts'
import { type HandlerContext, type SubscriptionsPart, toDefinition } from '../subscriptions/index.ts'
import { limitedDestination } from './acting.ts'
import type { ClosableActionContext } from './actions/index.ts'
import { type Alerts, createAlerts } from './alerts.ts'
import type { CheckPorts, ObserverConfig } from './config/index.ts'
import { createExecutor, createRunningObserver, type Executor } from './executor.ts'
import { listedEnv } from './listed-env.ts'
import { createMeasures } from './measures.ts'
import { createRecorder } from './recorder.ts'
import { registerObservers } from './registry-statements.ts'
import { createUpkeep } from './upkeep.ts'
import { selectBacklog } from './upkeep-statements.ts'

export interface EngineParts {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly definitions: EventDefinitions | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly delivering: Delivering
  readonly subscriptions: SubscriptionsPart
  readonly tellsDetails: boolean
  /** What this process is known by in the database. */
  readonly process: string
  /** What the program says goes before the file. */
  readonly runtime: { readonly record: 'all' | 'problems' | undefined; readonly channelCapacity: number | undefined }
}

/** What is in force: the file's settings, and observers from wherever they come. */
export interface InForce {
  readonly settings: Settings
  readonly observers: readonly ObserverConfig[]
  readonly ports: CheckPorts
  readonly contexts: readonly ClosableActionContext[]
}

export interface Engine {
  /** Makes it so, in the database and in this process. */
  apply(inForce: InForce): Promise<void>
  /** In a transaction or not: tells people, if they are to be told and were not just now. */
  alert(about: string, text: string): Promise<void>
  stop(): Promise<void>
}

/** The one reader that all observers share. */
export const SUBSCRIPTION = 'observers'
/** What is still under way with an old configuration has so long to end. */
const FAREWELL_MS = 600_000

export function createEngine(parts: EngineParts): Engine {
  const { database, clock, logger, delivering, subscriptions } = parts
  const measures = createMeasures(parts.metrics)
  const recorder = createRecorder({ db: database, clock, logger })
  const reactions = delivering.reactions()
  let executor: Executor = { handle: () => undefined }
  let alerts: Alerts | undefined
  let works: readonly Work[] = []
  let contexts: readonly ClosableActionContext[] = []
  const farewells = new Set<() => void>()
  let isRegistered = false
  let threshold = Number.POSITIVE_INFINITY
  const upkeep = createUpkeep({
    database,
    clock,
    logger,
    metrics: parts.metrics,
    process: parts.process,
    backlog: () => selectBacklog(database, SUBSCRIPTION),
    threshold: () => threshold,
    alert: async (text) => alerts?.raise(database, { about: SUBSCRIPTION, text }),
  })

  const handle = (event: AnyEvent, context: HandlerContext) => executor.handle(event, () => context.signal)

  /** `from`: where new actions begin, so that nothing lies between them and a subscription that is new too. */
  function toSubscription(observers: readonly ObserverConfig[], capacity: number, from: bigint) {
    return toDefinition(
      {
        id: SUBSCRIPTION,
        on: patternsOf(observers),
        from,
        concurrency: Math.min(capacity, 1_000),
        // Calls limit themselves; what is slow becomes a row and lets its event go.
        timeout: '15m',
        onFailure: 'skip',
        handle,
      },
      {
        kind: 'observers',
        version: hashOf(observers),
        begin: () => reactions.begin(),
        // Order is a matter of each observer.
        keyOf: (event) => event.id,
      },
    )
  }

  async function apply({ settings, observers, ports, contexts: opened }: InForce): Promise<void> {
    const on = observers.filter(({ enabled }) => enabled)
    const head = await settledPosition(database)
    const starts = await registerObservers(database, on.map(toRegistered), head)
    await saveLimits(database, limitsOf(settings, on))
    const env = listedEnv(settings.templates.env, parts.env)
    const prepare = ports.prepare!(settings)
    const nextAlerts = createAlerts(settings, { actionTypes: ports.actionTypes, prepare, delivering, logger })
    const recordsAll = (parts.runtime.record ?? settings.runtime.record) === 'all'
    const acting = {
      ...parts,
      env,
      measure: measures.action,
      record: (record: Parameters<typeof recorder.add>[0]) =>
        recordsAll || record.status !== 'success' || record.attempt > 1 ? recorder.add(record) : undefined,
      onDead: nextAlerts.onDead,
    }
    const running = on.map((config) => createRunningObserver(config, (owner) => starts.get(owner) ?? 0n, acting))
    const nextWorks = [...running.flatMap(({ actions }) => actions.map(({ work }) => work)), ...nextAlerts.works]
    const nextExecutor = createExecutor(running, {
      ...acting,
      reactions,
      recordsAll,
      record: recorder.add,
      count: measures.event,
    })
    const definition = toSubscription(on, parts.runtime.channelCapacity ?? settings.runtime.channelCapacity, head)
    // Nothing reads while it changes: the definition says which configuration an event was judged by.
    if (isRegistered) await subscriptions.replace(definition)
    executor = nextExecutor
    alerts = nextAlerts
    swapWorks(nextWorks)
    if (!isRegistered) subscriptions.register(definition)
    isRegistered = true
    retire(contexts)
    contexts = opened
    threshold = settings.runtime.backlogAlertThreshold
    await upkeep.start()
  }

  /** Rows of names that are gone wait for whoever still has them. */
  function swapWorks(next: readonly Work[]): void {
    const names = new Set(next.map(({ name }) => name))
    for (const { kind, name } of works) if (!names.has(name)) delivering.unregister(kind, name)
    for (const work of next) delivering.register(work)
    works = next
  }

  function retire(old: readonly ClosableActionContext[]): void {
    if (old.length === 0) return
    const close = () => {
      farewells.delete(close)
      cancel()
      for (const context of old) void context.close().catch(() => {})
    }
    const cancel = clock.setTimer(FAREWELL_MS, close)
    farewells.add(close)
  }

  return {
    apply,
    async alert(about, text) {
      await alerts?.raise(database, { about, text })
    },
    async stop() {
      await upkeep.stop()
      for (const close of [...farewells]) close()
      await Promise.all(contexts.map((context) => context.close()))
      contexts = []
    },
  }
}

/** Many patterns cost the database more than the events they keep away. */
function patternsOf(observers: readonly ObserverConfig[]): readonly string[] {
  const patterns = [...new Set(observers.flatMap(({ on }) => on))].sort()
  return patterns.length === 0 ? ['aftercommit.nothing'] : patterns.length > 50 ? ['*'] : patterns
}

function hashOf(observers: readonly ObserverConfig[]): string {
  const text = JSON.stringify(observers.map(({ name, hash }) => [name, hash]).sort())
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** What "why not" needs to know later, without secrets. */
function toRegistered({
  name,
  hash,
  on,
  entity,
  condition,
  strict,
  orderBy,
  sequential,
  onFailure,
  actions,
}: ObserverConfig) {
  return {
    observer: name,
    hash,
    actions: actions.map((action) => action.name),
    definition: {
      on,
      entity,
      condition,
      strict,
      order_by: orderBy,
      sequential,
      on_failure: onFailure,
      actions: actions.map(({ name: action, type }) => ({ name: action, type })),
    },
  }
}

function limitsOf({ destinations }: Settings, observers: readonly ObserverConfig[]): DestinationLimits[] {
  const limits = Object.entries(destinations).map(([origin, { concurrency, rate }]) => ({
    destination: `webhook ${origin}`,
    concurrency,
    ...bucketOf(rate),
  }))
  const own = observers
    .filter(({ concurrency, rate }) => concurrency !== null || rate !== null)
    .map(({ name, concurrency, rate }) => ({
      destination: limitedDestination(name),
      concurrency,
      ...bucketOf(rate),
    }))
  return [...limits, ...own]
}

/** `50/s` fills a bucket of fifty, fifty a second. */
function bucketOf(rate: Rate | null): Pick<DestinationLimits, 'rate' | 'burst'> {
  return rate === null ? { rate: null, burst: null } : { rate: (rate.count * 1_000) / rate.perMs, burst: rate.count }
}
