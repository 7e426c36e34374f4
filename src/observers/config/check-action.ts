/** One action of an observer: its type, its name, the keys of its type, its provider, and what only preparing it shows. */
import {
  checkData,
  type Found,
  fields,
  type Path,
  type ProviderName,
  type Secret,
  type Settings,
  withSecrets,
} from '../../configuration/index.ts'
import { closest } from '../../events/index.ts'
import type { ActionType, PreparedAction } from '../action.ts'
import { findActionType } from '../actions/index.ts'
import { toFound } from './compile-mistake.ts'
import { type ActionConfig, toRetry } from './observer-config.ts'
import { isTable, type ObserverInput } from './observer-schema.ts'
import type { CheckPorts } from './ports.ts'

export interface Surroundings extends Pick<CheckPorts, 'actionTypes'> {
  readonly prepare: ((type: ActionType, config: unknown) => PreparedAction) | undefined
  readonly settings: Settings
  readonly present: Present
  readonly secrets: ReadonlyMap<string, Secret>
  /** A package that may bring more types could not be loaded, which is reported: no type is missed for that. */
  readonly lacksTypes?: boolean
}

/** What the file has, right or wrong: what is there and wrong is reported once, and not as missing again. */
export interface Present {
  readonly providers: ReadonlySet<string>
  readonly emailTemplates: ReadonlySet<string>
  readonly hasFailureAlerts: boolean
  readonly hasRedis: boolean
}

export function presentIn({ providers, emailTemplates, failureAlerts, redis }: Settings): Present {
  return {
    providers: new Set(Object.keys(providers)),
    emailTemplates: new Set(Object.keys(emailTemplates)),
    hasFailureAlerts: failureAlerts.slack !== null || failureAlerts.email !== null,
    hasRedis: redis !== null,
  }
}

export interface CheckedAction {
  readonly found: readonly Found[]
  readonly config: ActionConfig | undefined
}

export function checkAction(
  given: unknown,
  path: Path,
  retry: ObserverInput['retry'],
  surroundings: Surroundings,
): CheckedAction {
  if (!isTable(given))
    return refuse({ path, at: 'value', message: 'must be a table with a type, like type = "webhook".' })
  const { type: typeName, name = typeName, ...keys } = given
  const { type, found: noType } = findType(typeName, path, surroundings.actionTypes)
  if (type === undefined) return { found: surroundings.lacksTypes ? [] : noType, config: undefined }
  const named = checkData(fields.name, name, { above: [...path, 'name'] })
  const checked = checkData(type.schema, keys, { above: path, alsoKnown: ['type', 'name'] })
  const needs = needsOf(type.type, keys)
  const found = [...named.found, ...checked.found, ...findMissing(needs, path, surroundings.present)]
  if (found.length > 0) return { found, config: undefined }
  const config = withSecrets(checked.value, surroundings.secrets, path)
  const { prepared, found: late } = isUsable(needs, surroundings.settings)
    ? prepareAction(type, config, path, surroundings.prepare)
    : NOT_PREPARED
  if (late.length > 0) return { found: late, config: undefined }
  const isSingle = prepared?.singleAttempt ?? keys.retry === false
  return {
    found: [],
    config: { name: String(name), type: type.type, config, retry: toRetry(retry, type, isSingle), prepared },
  }
}

/** Two actions of one name would share their past, their letters and their deliveries. */
export function findEqualNames(actions: readonly unknown[], above: Path): Found[] {
  const seen = new Set<unknown>()
  return actions.flatMap((action, at): Found[] => {
    if (!isTable(action)) return []
    const name = action.name ?? action.type
    if (name === undefined || !seen.has(name)) {
      seen.add(name)
      return []
    }
    const message = `is a second action named ${JSON.stringify(name)} in this observer. Give one of them another name.`
    return [{ path: [...above, at, action.name === undefined ? 'type' : 'name'], at: 'value', message }]
  })
}

/** Which provider an action type sends through. */
const PROVIDER_OF: ReadonlyMap<string, ProviderName> = new Map([
  ['slack', 'slack'],
  ['email', 'smtp'],
  ['sms', 'sms'],
  ['push', 'push'],
  ['search', 'search'],
])

interface Needs {
  readonly provider: ProviderName | undefined
  readonly emailTemplate: string | undefined
  readonly redis: boolean
}

function needsOf(type: string, { template, target }: Record<string, unknown>): Needs {
  const emailTemplate = type === 'email' && typeof template === 'string' ? template : undefined
  return { provider: PROVIDER_OF.get(type), emailTemplate, redis: type === 'cache' && target !== 'process' }
}

function findMissing({ provider, emailTemplate, redis }: Needs, path: Path, present: Present): Found[] {
  const found: Found[] = []
  if (provider !== undefined && !present.providers.has(provider)) {
    const message = `needs a provider, and [providers.${provider}] is not there. Add it, or remove the action.`
    found.push({ path: [...path, 'type'], at: 'value', message })
  }
  if (redis && !present.hasRedis) {
    const message = 'needs Redis, and [redis] is not there. Add it, say target = "process", or remove the action.'
    found.push({ path: [...path, 'type'], at: 'value', message })
  }
  if (emailTemplate !== undefined && !present.emailTemplates.has(emailTemplate)) {
    const near = closest(emailTemplate, present.emailTemplates)
    const hint = near === undefined ? 'Add it under [email_templates].' : `Did you mean "${near}"?`
    found.push({ path: [...path, 'template'], at: 'value', message: `names a mail that is not there. ${hint}` })
  }
  return found
}

function isUsable({ provider, emailTemplate, redis: needsRedis }: Needs, settings: Settings): boolean {
  const { providers, emailTemplates, redis } = settings
  const hasProvider = (provider === undefined || providers[provider] !== undefined) && (!needsRedis || redis !== null)
  return hasProvider && (emailTemplate === undefined || Object.hasOwn(emailTemplates, emailTemplate))
}

interface Preparation {
  readonly prepared: PreparedAction | null
  readonly found: readonly Found[]
}

const NOT_PREPARED: Preparation = { prepared: null, found: [] }

function prepareAction(type: ActionType, config: unknown, path: Path, prepare: Surroundings['prepare']): Preparation {
  try {
    return { prepared: prepare?.(type, config) ?? null, found: [] }
  } catch (error) {
    return { prepared: null, found: toFound(error, path) }
  }
}

function findType(given: unknown, path: Path, types: ReadonlyMap<string, ActionType>) {
  if (typeof given !== 'string') {
    const message = `is missing or no text. It must be one of ${[...types.keys()].join(', ')}.`
    return { type: undefined, found: [{ path: [...path, 'type'], at: 'key', message }] satisfies Found[] }
  }
  try {
    return { type: findActionType(types, given), found: [] }
  } catch (error) {
    return { type: undefined, found: toFound(error, path) }
  }
}

function refuse(found: Found): CheckedAction {
  return { found: [found], config: undefined }
}
