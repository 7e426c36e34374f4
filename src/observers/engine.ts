/**
 * Observers at work: what was checked becomes works, limits and one subscription. An event is judged by one configuration
 * and not by two, and the database tells which. A change goes through these steps; what fails leaves the one before:
 *
 *   placed      the subscription has a new generation: whoever reads by the rules before cannot move the checkpoint
 *   in force    the rules are written down, from the first event that was not judged by those before
 *   read with   whoever takes the subscription up writes them down again, if others were in force meanwhile
 */
import { DEFAULT_GROUP, type Settings } from '../configuration/index.ts'
import { type Delivering, sparingly, type Work } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, settledPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { PartOptions, Telemetry } from '../runtime/index.ts'
import {
  type CallContext,
  type Definition,
  type HandlerContext,
  type SubscriptionsPart,
  selectVersion,
  toDefinition,
} from '../subscriptions/index.ts'
import type { ClosableActionContext } from './actions/index.ts'
import { ALL_OBSERVERS, type Alerts, createAlerts } from './alerts.ts'
import type { CheckPorts, ObserverConfig, PrepareAction } from './config/index.ts'
import { createExecutor, createRunningObserver, type EventCall, type Executor } from './executor.ts'
import { listedEnv } from './listed-env.ts'
import { createMeasures } from './metrics.ts'
import { createRecorder } from './recorder.ts'
import { putInForce, type Rules } from './registry-statements.ts'
import { hashOf, limitsOf, readBy, subscriptionOf, toRegistered } from './rules.ts'
import { createStanding } from './standing.ts'
import { createUpkeep } from './upkeep.ts'
import { selectBacklog } from './upkeep-statements.ts'

export interface EngineParts extends PartOptions {
  readonly database: Database
  readonly definitions: EventDefinitions | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly delivering: Delivering
  readonly subscriptions: SubscriptionsPart
  readonly tellsDetails: boolean
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  /** What this process is known by in the database. */
  readonly process: string
  /** What the program says; it goes before the file. */
  readonly group: string | undefined
  /** What the program says goes before the file. */
  readonly runtime: { readonly record: 'all' | 'problems' | undefined; readonly channelCapacity: number | undefined }
}

/** What is in force: the file's settings, and observers from wherever they come. */
export interface InForce {
  readonly settings: Settings
  readonly observers: readonly ObserverConfig[]
  readonly actionTypes: CheckPorts['actionTypes']
  readonly prepare: PrepareAction
  /** What its actions share: closed when nothing in force uses it any more. */
  readonly contexts: readonly ClosableActionContext[]
}

export interface Engine {
  /** Makes it so, in the database and in this process; before subscriptions have started, in this process. */
  apply(inForce: InForce): Promise<void>
  /** Once subscriptions have started. */
  confirm(): Promise<void>
  /** In a transaction or not: tells people, if they are to be told and were not just now. */
  alert(about: string, text: string): Promise<void>
  stop(): Promise<void>
}

/** What is still under way with an old configuration has so long to end. */
const FAREWELL_MS = 600_000
/** Events whose actions have begun and that no checkpoint has passed: so many may be attempted again after a kill. */
const MOST_UNSAVED = 256
/** Where an action begins of which that is not known yet: nowhere. */
const NOWHERE = 2n ** 63n - 1n

/** One configuration, ready to be read with. */
interface Prepared {
  readonly rules: Rules
  readonly definition: Definition
  readonly works: readonly Work[]
  readonly alerts: Alerts
  readonly contexts: readonly ClosableActionContext[]
  readonly threshold: number
  /** Writes it down as in force. False when other rules are placed, or these are not yet. */
  putInForce(): Promise<boolean>
}

export function createEngine(parts: EngineParts): Engine {
  const { database, clock, logger, delivering, subscriptions } = parts
  const measures = createMeasures(parts.metrics)
  const recorder = createRecorder({ db: database, clock, logger })
  const reactions = delivering.reactions()
  /** What this process reads with, or would. */
  let wanted: Prepared | undefined
  /** Of these the database was told that they are in force, or that others are by now. */
  let settled: Prepared | undefined
  let works: readonly Work[] = []
  const farewells = new Set<() => void>()
  const upkeep = createUpkeep({
    database,
    clock,
    logger,
    metrics: parts.metrics,
    process: parts.process,
    backlog: sparingly(clock, async () => {
      if (wanted === undefined) return undefined
      const { subscription, observers } = wanted.rules
      const actions = observers.flatMap(({ observer, actions: names }) => names.map((name) => `${observer}/${name}`))
      return selectBacklog(database, subscription, actions)
    }),
    threshold: () => wanted?.threshold ?? Number.POSITIVE_INFINITY,
    alert: async (text) => wanted?.alerts.raise(database, wanted.alerts.alert(aboutAll(wanted.rules.group), text)),
  })
  const standing = createStanding({
    ...parts,
    rules: () => (settled === wanted ? wanted?.rules : undefined),
    // The same definition again: this process may take the subscription up from now on.
    onBack: async () => {
      if (wanted) await subscriptions.replace(wanted.definition)
    },
  })

  async function toPrepared({ settings, observers, actionTypes, prepare, contexts }: InForce): Promise<Prepared> {
    const on = observers.filter(({ enabled }) => enabled)
    // Nothing is changed before everything that is to be put in force can work here.
    for (const { prepared } of on.flatMap(({ actions }) => actions)) await prepared!.ready?.()
    const group = parts.group ?? settings.group
    const rules: Rules = {
      group,
      subscription: subscriptionOf(group),
      version: hashOf(on),
      observers: on.map((config) => toRegistered(config, group)),
      limits: limitsOf(settings, on),
      head: await settledPosition(database),
    }
    const env = listedEnv(settings.templates.env, parts.env)
    const alerts = createAlerts(settings, { actionTypes, prepare, logger })
    const recordsAll = (parts.runtime.record ?? settings.runtime.record) === 'all'
    const acting = {
      ...parts,
      env,
      measure: measures.action,
      record: (record: Parameters<typeof recorder.add>[0]) =>
        recordsAll || record.status !== 'success' || record.attempt > 1 ? recorder.add(record) : undefined,
      alerts,
    }
    const running = on.map((config) => createRunningObserver(config, () => NOWHERE, acting))
    const actions = running.flatMap((observer) => observer.actions)
    const executor = createExecutor(running, {
      ...acting,
      reactions,
      recordsAll,
      count: measures.event,
    })
    const capacity = parts.runtime.channelCapacity ?? settings.runtime.channelCapacity
    const prepared: Prepared = {
      rules,
      definition: toSubscription(on, rules, capacity, executor, () => begin(prepared)),
      works: [...actions.map(({ work }) => work), ...alerts.works],
      alerts,
      contexts,
      threshold: settings.runtime.backlogAlertThreshold,
      async putInForce() {
        const starts = await putInForce(database, rules)
        if (starts === undefined) return false
        settled = prepared
        for (const action of actions) action.start = startOf(starts, action.owner)
        return true
      },
    }
    return prepared
  }

  /** Before the first event is read with it, each time this process takes the subscription up. */
  async function begin(prepared: Prepared): Promise<void> {
    if (prepared !== wanted) {
      // It was placed, and then could neither be put in force nor be taken back.
      void goBack(prepared).catch(() => {})
      throw notInForce()
    }
    if (!(await prepared.putInForce())) throw notInForce()
    await reactions.begin()
  }

  async function apply(inForce: InForce): Promise<void> {
    const before = wanted
    const next = await toPrepared(inForce)
    if (before && before.rules.group !== next.rules.group) throw otherGroup(before.rules.group, next.rules.group)
    wanted = next
    try {
      const isPlaced = await subscriptions.replace(next.definition)
      // Nothing is written where it is not placed yet, or where rules of another process are placed by now.
      if (!(await next.putInForce()) && isPlaced) settled = next
    } catch (error) {
      wanted = before
      await goBack(next)
      throw error
    }
    swapWorks(next.works)
    retire(before?.contexts.filter((context) => !next.contexts.includes(context)) ?? [])
    await upkeep.start()
    await standing.start()
  }

  /**
   * Takes back rules of this process that failed. Rules that another process registered meanwhile stay in force. Where it
   * fails now, it is done again as soon as this process would read with rules that are not wanted.
   */
  async function goBack({ rules: { subscription, version } }: Prepared): Promise<void> {
    if (wanted === undefined) return subscriptions.get(subscription).stop()
    const found = await selectVersion(database.control, subscription).catch(() => version)
    if (found === undefined || found === version) await subscriptions.replace(wanted.definition).catch(() => {})
  }

  /** Rows of names that are gone wait for whoever still has them. */
  function swapWorks(next: readonly Work[]): void {
    for (const { kind, name } of works) delivering.unregister(kind, name)
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
    async confirm() {
      await wanted?.putInForce()
      settled = wanted
    },
    async alert(about, text) {
      await wanted?.alerts.raise(database, wanted.alerts.alert(about, text))
    },
    async stop() {
      await upkeep.stop()
      await standing.stop()
      for (const close of [...farewells]) close()
      await Promise.all((wanted?.contexts ?? []).map((context) => context.close()))
    },
  }
}

function toSubscription(
  observers: readonly ObserverConfig[],
  { subscription, version, head }: Rules,
  capacity: number,
  executor: Executor,
  begin: () => Promise<void>,
): Definition {
  return toDefinition(
    {
      id: subscription,
      on: readBy(observers),
      // Where new actions begin, so that nothing lies between them and a subscription that is new too.
      from: head,
      concurrency: Math.min(capacity, 1_000),
      // Actions limit themselves. Behind all others of its key that may be under way, an event waits for almost two days.
      timeout: '3d',
      onFailure: 'skip',
      handle: (event: AnyEvent, context: HandlerContext) => executor.handle(event, toEventCall(context)),
    },
    {
      kind: 'observers',
      version,
      begin,
      // One event asks for many things: only the one that ends the process is to be given up.
      handleSuspect: (event, context) => executor.handle(event, { ...toEventCall(context), isSuspect: true }),
      // Order is a matter of each observer.
      keyOf: (event) => event.id,
      mostUnsaved: MOST_UNSAVED,
      leaves: true,
    },
  )
}

function toEventCall(context: HandlerContext): EventCall {
  const owner = context as CallContext
  return { owner, leaving: owner.leaving }
}

/** Without a start it would act on everything that was ever kept. */
function startOf(starts: ReadonlyMap<string, bigint>, owner: string): bigint {
  const start = starts.get(owner)
  if (start !== undefined) return start
  throw new AftercommitError('BAD_STATE', `Where "${owner}" begins is not written down, so it is not put in force.`)
}

/** An alert about all observers of a group: those of two groups are counted apart. */
function aboutAll(group: string): string {
  return group === DEFAULT_GROUP ? ALL_OBSERVERS : `(observers of ${group})`
}

function otherGroup(from: string, to: string): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `The group of the observers changed from "${from}" to "${to}" while they are in force, so the change was refused and they ` +
      'stay as they were. Restart the process to move its rules to another group.',
  )
}

function notInForce(): AftercommitError {
  return new AftercommitError('LEASE_LOST', 'Other observers are in force by now, so these do not read.')
}
