/**
 * The whole file: settings and observers, checked together, because the one refers to the other. A table that is wrong
 * is left out of
 * what is checked after it, so that a mistake is reported once and not as everything that follows from it.
 */
import {
  ConfigError,
  type ConfigurationSource,
  checkData,
  type Found,
  findMistakes,
  type Mistake,
  pathKey,
  type ReadConfiguration,
  type References,
  readConfiguration,
  resolveReferences,
  type Settings,
  type SettingsInput,
  settingsSchema,
  type Table,
  toSettings,
  withSecrets,
} from '../../configuration/index.ts'
import type { ActionType } from '../action.ts'
import { loadActionPackages } from './action-packages.ts'
import type { Present } from './check-action.ts'
import { checkObserver } from './check-observer.ts'
import { toFound } from './compile-mistake.ts'
import { hashOf } from './hash.ts'
import type { ObserverConfig } from './observer-config.ts'
import { isTable, observerSchema } from './observer-schema.ts'
import type { CheckPorts } from './ports.ts'

export interface CheckedConfiguration extends Settings {
  readonly ok: true
  readonly observers: readonly ObserverConfig[]
  /** Of everything: the same file and the same names of variables have the same hash. */
  readonly hash: string
  /** What was read: what to watch. */
  readonly files: readonly string[]
  /** What its actions may be, those of packages included. */
  readonly actionTypes: ReadonlyMap<string, ActionType>
  /** As the file has it: what differences are told by. */
  readonly written: { readonly data: Table; readonly secrets: References['secrets'] }
}

export interface RefusedConfiguration {
  readonly ok: false
  readonly mistakes: readonly Mistake[]
}

/** Reads and checks. What is wrong with the file is in the result and never thrown. */
export async function loadConfigurationFile(
  source: ConfigurationSource,
  ports: CheckPorts,
): Promise<CheckedConfiguration | RefusedConfiguration> {
  try {
    return await checkConfiguration(await readConfiguration(source), ports)
  } catch (error) {
    if (error instanceof ConfigError) return { ok: false, mistakes: error.mistakes }
    throw error
  }
}

/** Loads the packages that the file names, then checks everything. */
export async function checkConfiguration(
  read: ReadConfiguration,
  ports: CheckPorts,
): Promise<CheckedConfiguration | RefusedConfiguration> {
  const { actionTypes, found } = await loadActionPackages(read, ports.actionTypes)
  return checkEverything(read, { ...ports, actionTypes }, found)
}

function checkEverything(
  { data, files, locate }: ReadConfiguration,
  ports: CheckPorts,
  inPackages: readonly Found[],
): CheckedConfiguration | RefusedConfiguration {
  const { observers, ...tables } = data
  const references = resolveReferences(data, ports.env)
  const checked = checkData(settingsSchema, isTable(observers) ? tables : data)
  const usable = (checked.value as SettingsInput | undefined) ?? withoutWrong(tables, checked.found)
  const settings = toSettings(withSecrets(usable, references.secrets))
  const present = presentInFile(tables)
  const { prepare, found: unprepared } = startPreparing(settings, ports)
  const lacksTypes = inPackages.length > 0
  const surroundings = { ...ports, prepare, settings, present, secrets: references.secrets, lacksTypes }
  const results = Object.entries(isTable(observers) ? observers : {}).map(([name, given]) => {
    const above = ['observers', name]
    const shape = findMistakes(observerSchema, given, { above })
    const wrongKeys = new Set(shape.map(({ path }) => String(path[above.length])))
    const { found, config } = checkObserver({ name, given, above, wrongKeys }, surroundings)
    return { found: [...shape, ...found], config }
  })
  const found = [
    ...checked.found,
    ...inPackages,
    ...references.found.filter(({ path }) => !(ports.hasDatabase && DATABASE_KEYS.has(String(path[0])))),
    ...unfitVariables(usable, references),
    ...alertsWithoutProvider(settings, present),
    ...unprepared,
    ...results.flatMap((result) => result.found),
  ]
  if (found.length > 0) return { ok: false, mistakes: locate(once(found)) }
  const configs = results.map(({ config }) => config!)
  const written = { data, secrets: references.secrets }
  return {
    ok: true,
    ...settings,
    observers: configs,
    hash: hashOf([settings, configs.map((one) => one.hash)]),
    files,
    actionTypes: ports.actionTypes,
    written,
  }
}

/** The tables in which nothing was found; of a table of named tables, the named ones. */
function withoutWrong(tables: Table, found: readonly Found[]): SettingsInput {
  const wrong = new Set(found.flatMap(({ path }) => [path.slice(0, 1), path.slice(0, 2)].map(pathKey)))
  const isRight = (...path: string[]) => !wrong.has(pathKey(path))
  const kept = Object.keys(tables).flatMap((key): [string, unknown][] => {
    const table = tables[key]
    if (isRight(key)) return [[key, table]]
    if (!NAMED.has(key) || !isTable(table)) return []
    return [[key, Object.fromEntries(Object.entries(table).filter(([name]) => isRight(key, name)))]]
  })
  return Object.fromEntries(kept) as SettingsInput
}

const NAMED = new Set(['providers', 'email_templates', 'destinations'])

function presentInFile({ providers, email_templates, failure_alerts, redis }: Table): Present {
  return {
    providers: new Set(isTable(providers) ? Object.keys(providers) : []),
    emailTemplates: new Set(isTable(email_templates) ? Object.keys(email_templates) : []),
    hasFailureAlerts: failure_alerts !== undefined,
    hasRedis: redis !== undefined,
  }
}

function startPreparing(settings: Settings, { prepare }: CheckPorts) {
  try {
    return { prepare: prepare?.(settings), found: [] }
  } catch (error) {
    return { prepare: undefined, found: toFound(error, []) }
  }
}

/** A variable that is set to something else than what belongs there: an address that is none. */
function unfitVariables(settings: SettingsInput, { secrets }: References): Found[] {
  if (secrets.size === 0) return []
  return checkData(settingsSchema, revealAt(settings, secrets, [])).found.map(({ path, message }) => {
    const [expected] = message.split(', or a reference')
    return { path, at: 'value', message: `is ${secrets.get(pathKey(path))}, whose value does not fit: it ${expected}.` }
  })
}

function revealAt(value: unknown, secrets: References['secrets'], path: readonly string[]): unknown {
  if (!isTable(value)) return secrets.get(pathKey(path))?.reveal() ?? value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revealAt(item, secrets, [...path, key])]))
}

function alertsWithoutProvider({ failureAlerts: { slack, email } }: Settings, { providers }: Present): Found[] {
  const missing: Found[] = []
  const needs = (key: string, provider: string): Found => ({
    path: ['failure_alerts', key],
    at: 'value',
    message: `needs [providers.${provider}], which is not there. Add it, or remove this.`,
  })
  if (slack !== null && !providers.has('slack')) missing.push(needs('slack', 'slack'))
  if (email !== null && !providers.has('smtp')) missing.push(needs('email', 'smtp'))
  return missing
}

function once(found: readonly Found[]): Found[] {
  return [...new Map(found.map((one) => [`${pathKey(one.path)} ${one.message}`, one])).values()]
}

const DATABASE_KEYS: ReadonlySet<string> = new Set(['database', 'direct_database'])
