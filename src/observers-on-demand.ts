/**
 * `ac.observers`: the door to everything here. It loads nothing until it is used: conditions, templates, an HTTP client
 * and the schema of the file are imported with the first observer.
 *
 *   nothing          no observer was ever added: nothing is registered, nothing is read
 *   kept             added or loaded before `start()`: checked, and applied when the process starts
 *   in force         applied; another file or another `add` replaces it as a whole, or leaves it when that is wrong
 */

import type { FileWatch, Settings } from './configuration/index.ts'
import type { DeadLetters } from './dead-letters/index.ts'
import type { Deliveries } from './delivery/index.ts'
import { AftercommitError } from './errors.ts'
import type { Log } from './log/index.ts'
import type {
  ActionType,
  BacktestOptions,
  BacktestReport,
  CheckedConfiguration,
  ConfigurationDiff,
  CustomFilter,
  CustomHandler,
  Engine,
  EngineParts,
  EventExplanation,
  ObserverConfig,
  ObserverOptions,
  ObserverStatus,
  Preparing,
} from './observers/index.ts'
import { createThrottledLog } from './runtime/index.ts'

export interface ObserverSummary {
  readonly name: string
  /** The file it comes from; null for one that was added by the program. */
  readonly source: 'file' | 'program'
  readonly on: readonly string[]
  readonly entity: string | null
  readonly condition: string | null
  readonly enabled: boolean
  readonly actions: readonly { readonly name: string; readonly type: string }[]
}

export interface Observers {
  /** Reads a file with all it includes. Throws `ConfigError` with every mistake; what was in force stays then. */
  loadFile(file: string, options?: { readonly watch?: boolean }): Promise<ConfigurationDiff | null>
  /** Reads the file again; keeps what is in force when something is wrong with it. */
  reload(): Promise<ConfigurationDiff | null>
  /** The same in TypeScript. */
  add(observer: ObserverOptions & { readonly name: string }): Promise<void>
  /** Takes away what the program added. False when there is none. */
  remove(name: string): Promise<boolean>
  list(): ObserverSummary[]
  /** Those of this process and those in force elsewhere, with what they did in the last 24 hours. */
  status(): Promise<ObserverStatus[]>
  /**
   * Why each observer acted on an event or did not, by the rules that were in force at the time, and what became of it.
   * Shows values of the payload: for the person who asks, not for a log.
   */
  explain(eventId: string): Promise<EventExplanation>
  /** Tries the rules of this process on real history. Sends nothing and writes nothing. */
  test(options: BacktestOptions): Promise<BacktestReport>
  /** What `type = "custom"` with this `handler` does. Before the observers that name it. */
  action(name: string, handler: CustomHandler): void
  /** An action type of your own, with its own keys. */
  actionType(type: ActionType): void
  /** A filter of your own for templates. */
  filter(name: string, filter: CustomFilter): void
}

export interface ObserversPart {
  readonly observers: Observers
  /** Before subscriptions start: what was added so far is put in force. */
  begin(): Promise<void>
  stop(): Promise<void>
  /** What is in force; undefined before the first. */
  inForce(): { readonly settings: Settings; readonly configs: readonly ObserverConfig[] } | undefined
  alert(about: string, text: string): Promise<void>
}

export interface ObserversParts extends EngineParts {
  /** Asked when it is needed: the log is built later. */
  readonly log: () => Pick<Log, 'read' | 'get'>
  readonly deliveries: Pick<Deliveries, 'list' | 'pauses'>
  readonly deadLetters: Pick<DeadLetters, 'list'>
}

export function createObservers(parts: ObserversParts): ObserversPart {
  const { logger } = parts
  const handlers = new Map<string, CustomHandler>()
  const filters: Record<string, CustomFilter> = Object.create(null)
  const actionTypes: ActionType[] = []
  const added = new Map<string, ObserverOptions>()
  const say = createThrottledLog({ logger, clock: parts.clock })
  let preparing: Preparing | undefined
  let engine: Engine | undefined
  let file: CheckedConfiguration | undefined
  let fileName: string | undefined
  let watch: FileWatch | undefined
  let current: { settings: Settings; configs: readonly ObserverConfig[] } | undefined
  let started = false
  /** One change at a time. */
  let changes: Promise<unknown> = Promise.resolve()

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = changes.then(change)
    changes = done.catch(() => {})
    return done
  }

  async function tools() {
    const [config, configuration] = await Promise.all([
      import('./observers/index.ts'),
      import('./configuration/index.ts'),
    ])
    preparing ??= config.createPreparing({ ...parts, handlers, filters, actionTypes })
    return { ports: preparing.ports, config, configuration, preparing }
  }

  /** Everything that would be in force: the file's observers and the program's, checked together. */
  async function check(nextFile: CheckedConfiguration | undefined, nextAdded: ReadonlyMap<string, ObserverOptions>) {
    const { ports, config, configuration } = await tools()
    const settings = nextFile ?? configuration.toSettings({})
    const own = [...nextAdded].map(([name, options]) => config.toObserverConfig(name, options, settings, ports))
    const taken = own.find(({ name }) => nextFile?.observers.some((observer) => observer.name === name))
    if (taken) {
      throw new AftercommitError(
        'BAD_OPTION',
        `Observer "${taken.name}" is in the file and was added by the program too, so nothing was changed. Rename one.`,
      )
    }
    return { settings, configs: [...(nextFile?.observers ?? []), ...own] }
  }

  async function put(next: { settings: Settings; configs: readonly ObserverConfig[] }): Promise<void> {
    if (started) await apply(next)
    current = next
  }

  async function apply({
    settings,
    configs,
  }: {
    settings: Settings
    configs: readonly ObserverConfig[]
  }): Promise<void> {
    const { ports, config, preparing: prepared } = await tools()
    engine ??= config.createEngine(parts)
    await engine.apply({ settings, observers: configs, ports, contexts: prepared.takeContexts() })
    logger.info({ observers: configs.length }, 'observers in force')
  }

  async function load(name: string): Promise<ConfigurationDiff | null> {
    const { ports, config, configuration } = await tools()
    const checked = await config.loadConfigurationFile({ file: name }, ports)
    if (!checked.ok) throw new configuration.ConfigError(checked.mistakes)
    const diff = file === undefined ? null : config.diffConfigurations(file, checked)
    await put(await check(checked, added))
    file = checked
    fileName = name
    return diff
  }

  async function startWatching(): Promise<void> {
    const { configuration } = await tools()
    watch?.stop()
    watch = await configuration.watchFiles(file!.files, () => {
      void observers.reload().catch(() => {})
    })
  }

  /** For who asks what the rules of this process say: they and what they may read. */
  async function rules() {
    const { config } = await tools()
    const env = config.listedEnv(current?.settings.templates.env ?? [], parts.env)
    return { config, looking: { ...parts, log: parts.log(), configs: current?.configs ?? [], env } }
  }

  const observers: Observers = {
    loadFile: (name, { watch: watches = false } = {}) =>
      inTurn(async () => {
        const diff = await load(name)
        if (watches) await startWatching()
        return diff
      }),
    reload: () =>
      inTurn(async () => {
        if (fileName === undefined) return null
        try {
          const diff = await load(fileName)
          if (watch) await startWatching()
          logger.info({ file: fileName, changed: diff !== null && !diff.isEmpty }, 'configuration reloaded')
          return diff
        } catch (error) {
          say('error', 'reload', { file: fileName, err: error }, 'configuration not reloaded; the one in force stays')
          throw error
        }
      }),
    add: ({ name, ...options }) =>
      inTurn(async () => {
        const next = new Map([...added, [name, options]])
        await put(await check(file, next))
        added.set(name, options)
      }),
    remove: (name) =>
      inTurn(async () => {
        if (!added.has(name)) return false
        const next = new Map([...added].filter(([known]) => known !== name))
        await put(await check(file, next))
        added.delete(name)
        return true
      }),
    list: () => (current?.configs ?? []).map((config) => toSummary(config, added.has(config.name))),
    async status() {
      const { config, looking } = await rules()
      return config.readObserverStatus({ ...looking, isProgram: (name) => added.has(name) })
    },
    async explain(eventId) {
      const { config, looking } = await rules()
      return config.explainEvent(eventId, looking)
    },
    async test(options) {
      const { config, looking } = await rules()
      return config.runBacktest(options, looking)
    },
    action(name, handler) {
      handlers.set(name, handler)
    },
    actionType(type) {
      if (preparing) throw tooLate(`Action type "${type.type}"`)
      actionTypes.push(type)
    },
    filter(name, filter) {
      if (preparing) throw tooLate(`Filter "${name}"`)
      filters[name] = filter
    },
  }

  return {
    observers,
    begin: () =>
      inTurn(async () => {
        if (started) return
        if (current) await apply(current)
        // Only now: a start that failed is made again as a whole.
        started = true
      }),
    async stop() {
      watch?.stop()
      await changes
      // A reload that was under way has begun another one.
      watch?.stop()
      await engine?.stop()
    },
    inForce: () => current,
    alert: async (about, text) => engine?.alert(about, text),
  }
}

function tooLate(what: string): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `${what} was registered after the first observer was loaded, so it was refused. Register it before.`,
  )
}

function toSummary(
  { name, on, entity, condition, enabled, actions }: ObserverConfig,
  isProgram: boolean,
): ObserverSummary {
  return {
    name,
    source: isProgram ? 'program' : 'file',
    on,
    entity,
    condition,
    enabled,
    actions: actions.map((action) => ({ name: action.name, type: action.type })),
  }
}
