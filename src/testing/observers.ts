/**
 * Observers without a database and without sending anything: the rules as they are written, one event at a time, and
 * what they would have done. Matching, conditions, templates, order, retries, failure policies and records are those of
 * production; only the ends are doubles: what is asked of actions, where dead letters go, and the clock.
 *
 * Start with `build`, which puts the parts of production together; observers-delivery.ts is what replaces the database.
 */
import type { Conditions } from '../conditions/index.ts'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import type {
  ActionType,
  CheckPorts,
  CustomFilter,
  CustomHandler,
  PrepareAction,
  RunRecord,
  TemplateCompiler,
} from '../observers/index.ts'
import { schemaName } from '../postgres/index.ts'
import {
  createInTurn,
  createTestClock,
  LazySignal,
  type Logger,
  silentLogger,
  type TestClock,
} from '../runtime/index.ts'
import { type MemoryDeadLetters, memoryDeadLetters } from './memory-dead-letters.ts'
import { type AskedAction, recordingActions, type TestActions, withoutSending } from './observers-actions.ts'
import { createAlertRaiser, type SentAlert } from './observers-alerts.ts'
import { loadConfig, type TestConfig } from './observers-config.ts'
import { createMemoryDelivery, type MemoryDelivery } from './observers-delivery.ts'
import { createTally, type ExecutionSummary, type ObservedActions, type Tally } from './observers-results.ts'

export interface ObserverExecutorOptions {
  readonly config: TestConfig
  /** What is asked of actions; `recordingActions()` unless told. */
  readonly actions?: TestActions | undefined
  /** In place of CEL. */
  readonly conditions?: Pick<Conditions, 'condition'> | undefined
  /** In place of the template engine. */
  readonly templates?: TemplateCompiler | undefined
  readonly deadLetters?: MemoryDeadLetters | undefined
  /** Moved on by `process` to where the next attempt is due. */
  readonly clock?: TestClock | undefined
  /** Which events exist. Without it any well-formed type is accepted, and fields are not checked. */
  readonly events?: EventDefinitions | undefined
  /** Where `${env:NAME}` is looked up; nothing of the real environment is seen. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Filters of your own for templates. */
  readonly filters?: Readonly<Record<string, CustomFilter>> | undefined
  /** Action types of your own. They are prepared and previewed, and not run. */
  readonly actionTypes?: readonly ActionType[] | undefined
  readonly logger?: Logger | undefined
}

export interface ObserverExecutor {
  /** The configuration was checked. Rejects with `ConfigError`, which has every mistake; so does `process` then. */
  ready(): Promise<void>
  /**
   * Does all that observers do about an event, every attempt of it, and says how it ended. What fails is in the result
   * and never thrown. Events are taken one after the other, in the order of the calls.
   */
  process(event: AnyEvent): Promise<ObservedActions>
  readonly summary: ExecutionSummary
  /** What people would have been told, for observers with `on_failure = "alert"`. */
  readonly alerts: readonly SentAlert[]
  readonly deadLetters: MemoryDeadLetters
  readonly clock: TestClock
}

export function createObserverExecutor(options: ObserverExecutorOptions): ObserverExecutor {
  const clock = options.clock ?? createTestClock()
  const deadLetters = options.deadLetters ?? memoryDeadLetters({ clock })
  const tally = createTally()
  const alerts: SentAlert[] = []
  const delivery = createMemoryDelivery(clock, deadLetters)
  const built = build(options, { clock, delivery, tally, alerts })
  // `ready` and `process` reject with its error.
  built.catch(() => {})
  const inTurn = createInTurn()

  async function processNow(event: AnyEvent): Promise<ObservedActions> {
    const { executor, observers } = await built
    const left = await executor.handle(liftEvent(options.events, event), { owner: NEVER })
    for (const run of left?.runs ?? []) tally.add(run as RunRecord)
    await delivery.drain()
    return tally.take(event.id, observers)
  }

  return {
    ready: async () => void (await built),
    process: (event) => inTurn(() => processNow(event)),
    get summary() {
      return tally.summary
    },
    alerts,
    deadLetters,
    clock,
  }
}

const NEVER = new LazySignal()

interface Doubles {
  readonly clock: TestClock
  readonly delivery: MemoryDelivery
  readonly tally: Tally
  readonly alerts: SentAlert[]
}

async function build(options: ObserverExecutorOptions, { clock, delivery, tally, alerts }: Doubles) {
  // The engine is loaded here: most tests that import this folder do without it.
  const parts = await import('../observers/index.ts')
  const { logger = silentLogger, events: definitions, env = {} } = options
  const actions = options.actions ?? recordingActions()
  const handlers = new Map<string, CustomHandler>()
  const preparing = parts.createPreparing({
    ...{ clock, logger, definitions, env, handlers, templates: options.templates },
    database: { ...delivery.database, schemaName: schemaName('aftercommit') },
    filters: options.filters ?? {},
    actionTypes: options.actionTypes ?? [],
  })
  const { ports } = preparing
  const prepareTo = (run: (asked: AskedAction) => unknown) => prepareForTest(ports, handlers, run, clock)
  const { settings, observers } = await loadConfig(options.config, {
    ...ports,
    ...(options.conditions && conditionsOf(options.conditions)),
    prepare: prepareTo((asked) => actions.execute(asked)),
  })
  const raising = parts.createAlerts(settings, {
    ...{ actionTypes: ports.actionTypes, logger },
    prepare: prepareTo((asked) => alerts.push(toSentAlert(asked)))(settings),
    raise: createAlertRaiser(clock, delivery.delivering),
  })
  const acting = {
    ...{ clock, logger, definitions, database: delivery.database, delivering: delivery.delivering },
    env: parts.listedEnv(settings.templates.env, env),
    record: async (run: Parameters<Tally['add']>[0]) => tally.add(run),
    measure: () => {},
    alerts: raising,
  }
  const on = observers.filter(({ enabled }) => enabled)
  const running = on.map((config) => parts.createRunningObserver(config, () => -1n, acting))
  for (const work of [...running.flatMap(({ actions }) => actions.map((one) => one.work)), ...raising.works]) {
    delivery.register(work)
  }
  const executor = parts.createExecutor(running, {
    ...acting,
    ...{ reactions: delivery.reactions, recordsAll: true, tellsDetails: options.logger !== undefined },
    count: (_, outcome) => tally.count(outcome),
  })
  return { executor, observers: on }
}

/** Prepares as in production, and takes out the sending. Which handlers an application has is not known here. */
function prepareForTest(
  ports: CheckPorts,
  handlers: Map<string, CustomHandler>,
  execute: (asked: AskedAction) => unknown,
  clock: TestClock,
): NonNullable<CheckPorts['prepare']> {
  return (settings) => {
    const prepare = ports.prepare!(settings)
    const prepareAction: PrepareAction = (type, config, words) => {
      const { handler } = config as { handler?: unknown }
      if (type.type === 'custom' && typeof handler === 'string') handlers.set(handler, () => {})
      return withoutSending(prepare(type, config, words), type.type, execute, clock.monotonic)
    }
    return prepareAction
  }
}

function conditionsOf(conditions: Pick<Conditions, 'condition'>): Pick<CheckPorts, 'compileCondition'> {
  return { compileCondition: (source, { strict, env }) => conditions.condition(source, { strict, env }) }
}

function toSentAlert({ type, event, preview: { content } }: AskedAction): SentAlert {
  const { about, count } = event.payload as { about: string; count: number }
  return { type, about, count, content }
}
