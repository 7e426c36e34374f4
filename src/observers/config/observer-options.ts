/** The same observers written in TypeScript: `ac.observers.add({ name, on, actions: [{ type: 'log', message: '…' }] })`. */
import {
  ConfigError,
  type Found,
  findMistakes,
  type Mistake,
  pathText,
  type Settings,
} from '../../configuration/index.ts'
import type { Duration, RetryOptions } from '../../runtime/index.ts'
import { presentIn } from './check-action.ts'
import { checkObserver } from './check-observer.ts'
import type { ObserverConfig } from './observer-config.ts'
import { camelCaseSchema, isTable, toCamelCasePath, toFileKey, toFileKeys } from './observer-schema.ts'
import type { CheckPorts } from './ports.ts'

export interface ObserverOptions {
  /** Patterns of event types; without it the name is the event type. */
  readonly on?: string | readonly string[]
  readonly entity?: string
  /** CEL. */
  readonly condition?: string
  readonly actions: readonly ActionOptions[]
  readonly retry?: RetryOptions
  readonly onFailure?: 'dlq' | 'alert' | 'log'
  readonly enabled?: boolean
  readonly sequential?: boolean
  /** `'aggregate'`, or CEL. */
  readonly orderBy?: string
  readonly concurrency?: number
  /** Like `'50/s'`. */
  readonly rate?: string
  readonly timeout?: Duration
  readonly strict?: boolean
}

/** `type`, perhaps a `name`, and the keys of the type as in the file. */
export interface ActionOptions {
  readonly type: string
  readonly name?: string
  readonly [key: string]: unknown
}

/** Throws ConfigError with every mistake. The settings are those of the file in force, or `toSettings({})`. */
export function toObserverConfig(
  name: string,
  options: ObserverOptions,
  settings: Settings,
  ports: Omit<CheckPorts, 'env'>,
): ObserverConfig {
  const shape = findMistakes(camelCaseSchema, options)
  const wrongKeys = new Set(shape.map(({ path }) => toFileKey(String(path[0]))))
  const given = isTable(options) ? toFileKeys(options) : options
  const surroundings = {
    ...ports,
    settings,
    prepare: ports.prepare?.(settings),
    present: presentIn(settings),
    secrets: new Map(),
  }
  const { found, config } = checkObserver({ name, given, above: [], wrongKeys }, surroundings)
  if (config !== undefined) return config
  throw new ConfigError([...shape, ...found.map(inCamelCase)].map((one) => toMistake(name, one)))
}

function inCamelCase(found: Found): Found {
  return { ...found, path: found.path.length === 0 ? found.path : toCamelCasePath(found.path) }
}

function toMistake(name: string, { path, message }: Found): Mistake {
  return { where: `observer ${JSON.stringify(name)}`, path: path.length === 0 ? 'name' : pathText(path), message }
}
