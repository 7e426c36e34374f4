/**
 * `ac.observers`: the door to everything here. It loads nothing until it is used: conditions, templates, an HTTP client
 * and the schema of the file are imported with the first observer.
 *
 *   nothing          no observer was ever added: nothing is registered, nothing is read
 *   kept             added or loaded before `start()`: checked, and applied when the process starts
 *   in force         applied; another file or another `add` replaces it as a whole, or leaves it when that is wrong
 */

import type { CacheActions } from './cache/index.ts'
import type { FileStamps, FileWatch } from './configuration/index.ts'
import type { DeadLetters } from './dead-letters/index.ts'
import type { Deliveries } from './delivery/index.ts'
import { AftercommitError } from './errors.ts'
import type { Log } from './log/index.ts'
import type {
  ActionType,
  BacktestOptions,
  BacktestReport,
  CheckedConfiguration,
  Checking,
  ConfigurationDiff,
  CustomFilter,
  CustomHandler,
  Engine,
  EngineParts,
  EventExplanation,
  InForce,
  ObserverConfig,
  ObserverOptions,
  ObserverStatus,
  Preparing,
  ReindexOptions,
  ReindexReport,
} from './observers/index.ts'
import type { Finding } from './postgres/index.ts'
import { createInTurn, createThrottledLog } from './runtime/index.ts'
import { createDocumentWriter } from './search/index.ts'

/** For those who write action types. */
export type {
  ActionContext,
  ActionRequest,
  ActionResult,
  ActionType,
  PreparedAction,
  Preview,
  ReindexedIndex,
  ReindexOptions,
  ReindexProblem,
  ReindexReport,
} from './observers/index.ts'

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
  /** Before subscriptions start: what was added so far is made ready. */
  begin(): Promise<void>
  /** After subscriptions have started: what was made ready is in force, and what is committed from now on is seen. */
  confirm(): Promise<void>
  stop(): Promise<void>
  /** What is in force; undefined before the first. */
  inForce(): Pick<InForce, 'settings' | 'observers'> | undefined
  alert(about: string, text: string): Promise<void>
  /** Why an address may not be called by the rules in force, to follow "because"; undefined when it may. */
  refusalOf(address: string): Promise<string | undefined>
  /** Whether processes lost their rules, and whether the services that the file in force names can be reached. */
  diagnose(): Promise<Finding[]>
  /** Makes search indexes anew by the rules of this process. */
  reindex(options?: ReindexOptions): Promise<ReindexReport>
}

export interface ObserversParts extends EngineParts {
  /** The caches inside the processes. */
  readonly cache: CacheActions
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
  const documents = createDocumentWriter(parts.database)
  let preparing: Preparing | undefined
  let checking: Checking | undefined
  let engine: Engine | undefined
  let file: CheckedConfiguration | undefined
  let fileName: string | undefined
  /** What the file and all it includes held when they were put in force, and when they were last read, right or wrong. */
  let loaded: FileStamps = new Map()
  let lastRead: FileStamps = new Map()
  let watch: FileWatch | undefined
  let current: InForce | undefined
  let started = false
  let stopped = false
  /** One change at a time. */
  const inTurn = createInTurn()

  async function tools() {
    const [config, configuration] = await Promise.all([
      import('./observers/index.ts'),
      import('./configuration/index.ts'),
    ])
    preparing ??= config.createPreparing({ ...parts, handlers, filters, actionTypes, documents })
    checking ??= config.createChecking(preparing)
    return { ports: preparing.ports, config, configuration, checking }
  }

  /** Checks everything that would be in force, and makes it so; what fails leaves everything as it was. */
  async function put(
    nextFile: CheckedConfiguration | undefined,
    nextAdded: ReadonlyMap<string, ObserverOptions>,
  ): Promise<void> {
    const { checking: checks } = await tools()
    try {
      const next = checks.check(nextFile, nextAdded)
      if (started) await apply(next)
      current = next
    } catch (error) {
      checks.forget()
      throw error
    }
  }

  async function apply(next: InForce): Promise<void> {
    const { config } = await tools()
    engine ??= config.createEngine(parts)
    await engine.apply(next)
    logger.info({ observers: next.observers.length }, 'observers in force')
    await warnOfLacking(next)
  }

  /** Rules stay in force: what an action lacks may be created at any time, and other actions do not need it. */
  async function warnOfLacking({ observers: configs }: InForce): Promise<void> {
    const { config } = await tools()
    try {
      for (const { reason, ...fields } of await config.findLacking(configs)) {
        logger.warn(fields, `an action cannot run yet and its events become dead letters. ${reason}`)
      }
    } catch (error) {
      logger.warn({ err: error }, 'the database could not be asked for what actions need')
    }
  }

  async function load(name: string): Promise<ConfigurationDiff | null> {
    const { config, configuration, checking: checks } = await tools()
    const read = new Map<string, string>()
    try {
      const checked = await readFile(name, (path, stamp) => read.set(path, stamp))
      await refuseEmptied(read)
      const diff = file === undefined ? null : config.diffConfigurations(file, checked)
      await put(checked, added)
      file = checked
      fileName = name
      loaded = read
      know(read)
      return diff
    } catch (error) {
      checks.forget()
      // Wrong until one of these is another one; anything else may go well the next time.
      if (error instanceof configuration.ConfigError && name === fileName) know(new Map([...lastRead, ...read]))
      throw error
    }
  }

  async function readFile(name: string, onRead: (path: string, stamp: string) => void): Promise<CheckedConfiguration> {
    const { ports, config, configuration } = await tools()
    const checked = await config.loadConfigurationFile({ file: name, onRead }, ports)
    if (checked.ok) return checked
    throw new configuration.ConfigError(checked.mistakes)
  }

  function know(read: FileStamps): void {
    lastRead = read
    watch?.know(read)
  }

  /** A file that is cut and not written yet, or never for want of space, is valid TOML and would end every observer of it. */
  async function refuseEmptied(read: FileStamps): Promise<void> {
    const { EMPTY, ConfigError } = (await tools()).configuration
    const emptied = [...read].filter(([path, stamp]) => stamp === EMPTY && (loaded.get(path) ?? EMPTY) !== EMPTY)
    if (emptied.length === 0) return
    const message = 'is empty, and was not. If that is meant, leave a comment in it; what was in force stays.'
    throw new ConfigError(emptied.map(([path]) => ({ where: path, path: '(file)', message })))
  }

  async function reload(): Promise<ConfigurationDiff | null> {
    if (fileName === undefined) return null
    try {
      const diff = await load(fileName)
      logger.info({ file: fileName, changed: diff !== null && !diff.isEmpty }, 'configuration reloaded')
      return diff
    } catch (error) {
      // Each mistake at once; the same one again is counted.
      const kind = `reload ${error instanceof Error ? error.message : ''}`
      say('error', kind, { file: fileName, err: error }, 'configuration not reloaded; the one in force stays')
      throw error
    }
  }

  /** For the watch, which calls again from time to time while the file is not at fault. */
  async function reloadChanged(): Promise<void> {
    await inTurn(async () => stopped || (await reload())).catch(() => {})
  }

  /** For who asks what the rules of this process say: they and what they may read. */
  async function rules() {
    const { config } = await tools()
    const env = config.listedEnv(current?.settings.templates.env ?? [], parts.env)
    return { config, looking: { ...parts, log: parts.log(), configs: current?.observers ?? [], env } }
  }

  const observers: Observers = {
    loadFile: (name, { watch: watches = false } = {}) =>
      inTurn(async () => {
        const { configuration } = await tools()
        const diff = await load(name)
        watch?.stop()
        watch = watches && !stopped ? configuration.watchFiles(lastRead, reloadChanged) : undefined
        return diff
      }),
    reload: () => inTurn(reload),
    add: ({ name, ...options }) =>
      inTurn(async () => {
        await put(file, new Map([...added, [name, options]]))
        added.set(name, options)
      }),
    remove: (name) =>
      inTurn(async () => {
        if (!added.has(name)) return false
        await put(file, new Map([...added].filter(([known]) => known !== name)))
        added.delete(name)
        return true
      }),
    list: () => (current?.observers ?? []).map((config) => toSummary(config, added.has(config.name))),
    async status() {
      const { config, looking } = await rules()
      return config.readObserverStatus({ ...looking, isProgram: (name) => added.has(name) })
    },
    async explain(eventId) {
      const { config, looking } = await rules()
      const group = parts.group ?? current?.settings.group ?? 'observers'
      return config.explainEvent(eventId, { ...looking, subscription: config.subscriptionOf(group) })
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
    confirm: () => inTurn(async () => engine?.confirm()),
    async stop() {
      stopped = true
      watch?.stop()
      await inTurn(() => {})
      await engine?.stop()
    },
    inForce: () => current,
    alert: async (about, text) => engine?.alert(about, text),
    async refusalOf(address) {
      const { judgeUrl, parseRules } = await import('./observers/index.ts')
      return judgeUrl(address, parseRules(current?.settings.network.allow ?? []))
    },
    async diagnose() {
      const { diagnoseLacking, diagnoseProviders, diagnoseStrays } = await import('./observers/index.ts')
      const providers = current ? await diagnoseProviders(current.settings, parts.database, parts.clock) : []
      const lacking = await diagnoseLacking(current?.observers ?? [])
      return [await diagnoseStrays(parts.database), ...providers, ...lacking]
    },
    async reindex(options = {}) {
      const { config, looking } = await rules()
      return config.runReindex(options, { ...looking, documents })
    },
  }
}

/** Types an action type of your own. What is wrong with it is said when it is registered or its package is loaded. */
export function defineActionType<Config>(type: ActionType<Config>): ActionType<Config> {
  return type
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
