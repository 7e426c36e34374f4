/**
 * The configuration in force: flags, then the environment, then the file, then defaults, setting by setting. Everything
 * is checked before anything is used, and all mistakes are reported together.
 */
import { existsSync } from 'node:fs'
import type { Mistake, ReadConfiguration, SettingsInput, Table } from '../configuration/index.ts'
import type { AftercommitOptions } from '../index.ts'
import { SETTINGS, type SettingDefinition, type SettingName } from './config-settings.ts'
import type { GlobalOptions } from './program.ts'

interface Setting {
  readonly name: SettingName
  readonly value: string | number
  readonly origin: 'flag' | 'environment' | 'file' | 'default'
  /** The flag, variable or file it comes from. */
  readonly source: string | null
}

export interface Configuration {
  readonly settings: readonly Setting[]
  readonly file: string | null
  /** Nobody named a database, so it is the embedded one. */
  readonly isEmbedded: boolean
  /** For `createAftercommit`: only what somebody set, so that defaults stay where they are written. */
  readonly options: AftercommitOptions
}

const DEFAULT_FILE = 'aftercommit.toml'

/**
 * What is looked at in the file. Most commands want a database and little else: they check the settings, and neither
 * the observers nor variables that only observers use.
 */
export type CheckedPart = 'settings' | 'everything'

export async function loadConfiguration(
  flags: Pick<GlobalOptions, 'database' | 'schema' | 'config'>,
  env: NodeJS.ProcessEnv,
  part: CheckedPart = 'settings',
): Promise<Configuration> {
  const file = fileToRead(flags)
  const given = [...fromFlags(flags), ...fromEnvironment(env)]
  // Checking takes zod, which takes its time to load: only when there is something to check.
  const { settings: fromFile, capture } =
    given.length > 0 || file !== undefined ? await check(given, file, env, part) : NOTHING_READ
  const settings = SETTINGS.map(({ name, fallback }) => {
    return (
      [...given, ...fromFile].find((one) => one.name === name) ?? {
        name,
        value: fallback,
        origin: 'default',
        source: null,
      }
    )
  }) as Setting[]
  const isEmbedded = settings.every(({ name, origin }) => name !== 'database' || origin === 'default')
  return { settings, file: file ?? null, isEmbedded, options: { ...toOptions(settings), ...(capture && { capture }) } }
}

/** What commands use of a file. */
interface Read {
  readonly settings: readonly Setting[]
  readonly capture: SettingsInput['capture']
}

const NOTHING_READ: Read = { settings: [], capture: undefined }

/** What the file says where neither a flag nor the environment says otherwise: what is overridden may refer to nothing. */
export function withoutOverridden(
  data: Table,
  flags: Pick<GlobalOptions, 'database' | 'schema'>,
  env: NodeJS.ProcessEnv,
): Table {
  return withoutNames(data, [...fromFlags(flags), ...fromEnvironment(env)])
}

function withoutNames(data: Table, given: readonly Pick<Setting, 'name'>[]): Table {
  const names = new Set<string>(given.map(({ name }) => name))
  return Object.fromEntries(Object.entries(data).filter(([name]) => !names.has(name)))
}

/** The file that is named, else aftercommit.toml where there is one. */
export function fileToRead({ config }: Pick<GlobalOptions, 'config'>): string | undefined {
  return config ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined)
}

/** Throws every mistake at once; otherwise gives the settings of the file. */
async function check(
  given: readonly Setting[],
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  part: CheckedPart,
): Promise<Read> {
  const { ConfigError, findMistakes, readConfiguration, settingsSchema } = await import('../configuration/index.ts')
  const mistakes: Mistake[] = given.flatMap(({ name, value, source }) =>
    findMistakes(settingsSchema, toTree([{ name, value }])).map(({ message }) => ({
      where: source ?? '',
      path: name,
      message,
    })),
  )
  let read: Read = NOTHING_READ
  if (file !== undefined) {
    try {
      const content = await readConfiguration({ file })
      const data = withoutNames(content.data, given)
      const found = await (part === 'everything' ? checkEverything : checkSettings)({ ...content, data }, env)
      mistakes.push(...found)
      if (found.length === 0) {
        read = { settings: settingsIn(data, file, env), capture: data.capture as Read['capture'] }
      }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      mistakes.push(...error.mistakes)
    }
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return read
}

async function checkSettings({ data, locate }: ReadConfiguration, env: NodeJS.ProcessEnv): Promise<Mistake[]> {
  const { findMistakes, resolveReferences, settingsSchema } = await import('../configuration/index.ts')
  const { database, direct_database } = data
  return locate([...findMistakes(settingsSchema, data), ...resolveReferences({ database, direct_database }, env).found])
}

/** The events and handlers of the application are not known here; all else is checked as a program would. */
async function checkEverything(read: ReadConfiguration, env: NodeJS.ProcessEnv): Promise<readonly Mistake[]> {
  const { checkConfiguration, checkOnlyPorts } = await import('../observers/index.ts')
  const result = await checkConfiguration(read, checkOnlyPorts(env))
  return result.ok ? [] : result.mistakes
}

function fromFlags(flags: Pick<GlobalOptions, 'database' | 'schema'>): Setting[] {
  return SETTINGS.flatMap((setting: SettingDefinition) => {
    const value = setting.flag && flags[setting.flag]
    return value === undefined ? [] : [settingOf(setting, value, 'flag', `--${setting.flag}`)]
  })
}

/** An empty variable counts as none. */
function fromEnvironment(env: NodeJS.ProcessEnv): Setting[] {
  return SETTINGS.flatMap((setting: SettingDefinition) => {
    const text = env[setting.env]
    if (text === undefined || text === '') return []
    const value = setting.numeric && /^\d{1,15}$/.test(text) ? Number(text) : text
    return [settingOf(setting, value, 'environment', setting.env)]
  })
}

function settingOf(
  { name }: SettingDefinition,
  value: string | number,
  origin: Setting['origin'],
  source: string,
): Setting {
  return { name: name as SettingName, value, origin, source }
}

function settingsIn(data: Table, file: string, env: NodeJS.ProcessEnv): Setting[] {
  return SETTINGS.flatMap((setting: SettingDefinition) => {
    const value = valueAt(data, setting.name)
    return value === undefined ? [] : [settingOf(setting, resolve(value, env), 'file', file)]
  })
}

/** `${env:NAME}` keeps secrets out of the file. That it can be resolved has been checked. */
function resolve(value: string | number, env: NodeJS.ProcessEnv): string | number {
  const variable = /^\$\{env:(\w+)\}$/.exec(String(value))?.[1]
  return variable === undefined ? value : (env[variable] ?? value)
}

function valueAt(data: Table, name: string): string | number | undefined {
  return name.split('.').reduce<unknown>((table, key) => (table as Table | undefined)?.[key], data) as
    | string
    | number
    | undefined
}

function toTree(settings: readonly Pick<Setting, 'name' | 'value'>[]): Table {
  const tree: Table = {}
  for (const { name, value } of settings) {
    const [first = '', second] = name.split('.')
    if (second === undefined) tree[first] = value
    else tree[first] = { ...(tree[first] as Table | undefined), [second]: value }
  }
  return tree
}

function toOptions(settings: readonly Setting[]): AftercommitOptions {
  const {
    database,
    direct_database,
    schema,
    log = {},
  } = toTree(settings.filter(({ origin }) => origin !== 'default')) as SettingsInput
  const { retention, wake, max_payload, max_nesting, max_depth } = log
  return {
    database,
    directDatabase: direct_database,
    schema,
    log: { retention, wake, maxPayload: max_payload, maxNesting: max_nesting, maxDepth: max_depth },
  }
}
