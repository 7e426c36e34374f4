/**
 * The configuration in force: flags, then the environment, then the file, then defaults, setting by setting. Everything
 * is checked before anything is used, and all mistakes are reported together.
 */
import { existsSync, readFileSync } from 'node:fs'
import type { AftercommitOptions } from '../index.ts'
import type { ConfigFile, Table } from './config-file.ts'
import { ConfigError, type Mistake } from './config-mistake.ts'
import type { ConfigInput } from './config-schema.ts'
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

export async function loadConfiguration(
  flags: Pick<GlobalOptions, 'database' | 'schema' | 'config'>,
  env: NodeJS.ProcessEnv,
): Promise<Configuration> {
  const file = findFile(flags.config)
  const given = [...fromFlags(flags), ...fromEnvironment(env)]
  const mistakes: Mistake[] = []
  // Checking takes zod, which takes its time to load: only when there is something to check.
  if (given.length > 0) mistakes.push(...(await checkGiven(given)))
  const fromFile = file === undefined ? [] : await readSettings(file, env, mistakes)
  if (mistakes.length > 0) throw new ConfigError(mistakes)
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
  return { settings, file: file ?? null, isEmbedded, options: toOptions(settings) }
}

function findFile(asked: string | undefined): string | undefined {
  if (asked === undefined) return existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined
  if (existsSync(asked)) return asked
  throw new ConfigError([
    { where: '--config', path: asked, message: 'There is no such file. Correct the path, or leave it out.' },
  ])
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

async function checkGiven(given: readonly Setting[]): Promise<Mistake[]> {
  const { findMistakes } = await import('./find-mistakes.ts')
  return given.flatMap(({ name, value, source }) =>
    findMistakes(toTree([{ name, value }])).map(({ path, message }) => ({
      where: source ?? '',
      path: path.join('.'),
      message,
    })),
  )
}

async function readSettings(file: string, env: NodeJS.ProcessEnv, mistakes: Mistake[]): Promise<Setting[]> {
  const [{ parseConfigFile }, { findMistakes }] = await Promise.all([
    import('./config-file.ts'),
    import('./find-mistakes.ts'),
  ])
  const parsed = parseConfigFile(readFileSync(file, 'utf8'), file)
  const found = findMistakes(parsed.data)
  mistakes.push(...parsed.locate(found))
  if (found.length > 0) return []
  return SETTINGS.flatMap((setting: SettingDefinition) => {
    const value = valueAt(parsed.data, setting.name)
    if (value === undefined) return []
    return [settingOf(setting, resolveReference(value, setting.name, env, parsed, mistakes), 'file', file)]
  })
}

/** `${env:NAME}` keeps secrets out of the file. */
function resolveReference(
  value: string | number,
  name: string,
  env: NodeJS.ProcessEnv,
  file: ConfigFile,
  mistakes: Mistake[],
): string | number {
  const variable = /^\$\{env:(\w+)\}$/.exec(String(value))?.[1]
  if (variable === undefined) return value
  const found = env[variable]
  if (found) return found
  const message = `refers to the variable ${variable}, which is not set. Set it, or leave the setting out.`
  mistakes.push(...file.locate([{ path: name.split('.'), at: 'value', message }]))
  return value
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
  } = toTree(settings.filter(({ origin }) => origin !== 'default')) as ConfigInput
  const { retention, wake, max_payload, max_nesting, max_depth } = log
  return {
    database,
    directDatabase: direct_database,
    schema,
    log: { retention, wake, maxPayload: max_payload, maxNesting: max_nesting, maxDepth: max_depth },
  }
}
