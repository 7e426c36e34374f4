/** One observer, from what was written to what runs. Every mistake is found, the rest of it being wrong or not. */
import { type Found, fields, findMistakes, type Path } from '../../configuration/index.ts'
import type { ActionType } from '../action.ts'
import { checkAction, findEqualNames, type Surroundings } from './check-action.ts'
import { checkPatterns } from './check-patterns.ts'
import { toFound } from './compile-mistake.ts'
import { type ActionConfig, type ObserverConfig, toObserver } from './observer-config.ts'
import { isTable, type ObserverInput } from './observer-schema.ts'
import type { CheckPorts, ExpressionOptions, PrepareAction } from './ports.ts'

export interface ObserverSurroundings
  extends Omit<Surroundings, 'prepare'>,
    Pick<CheckPorts, 'events' | 'compileCondition' | 'compileExpression'> {
  readonly prepare: PrepareAction | undefined
}

export interface GivenObserver {
  readonly name: string
  readonly given: unknown
  /** Where it stands. */
  readonly above: Path
  /** Keys in which its schema has found something: they are not looked at again. */
  readonly wrongKeys: ReadonlySet<string>
}

export interface CheckedObserver {
  /** What the schema has found is not repeated. */
  readonly found: readonly Found[]
  readonly config: ObserverConfig | undefined
}

export function checkObserver(observer: GivenObserver, surroundings: ObserverSurroundings): CheckedObserver {
  const { name, given, above, wrongKeys } = observer
  const { prepare } = surroundings
  if (!isTable(given)) return { found: [], config: undefined }
  const read = <Key extends keyof ObserverInput>(key: Key) =>
    (wrongKeys.has(key) ? undefined : given[key]) as ObserverInput[Key] | undefined
  const useless = uselessRetryKeys(read('retry'), [...above, 'retry'])
  const retry = useless.length > 0 ? undefined : read('retry')
  const actions = read('actions') ?? []

  const wrongName = badName(name, above)
  const patterns =
    wrongKeys.has('on') || (given.on === undefined && wrongName.length > 0)
      ? { found: [], events: undefined }
      : checkPatterns(name, read('on'), surroundings.events, above)
  const options = { env: surroundings.settings.templates.env, events: patterns.events }
  const compiled = compileExpressions(
    { condition: read('condition'), orderBy: read('order_by'), strict: read('strict') ?? false },
    options,
    surroundings,
  )
  const inside = {
    ...surroundings,
    prepare: prepare && ((type: ActionType, config: unknown) => prepare(type, config, options)),
  }
  const checked = actions.map((action, at) => checkAction(action, [...above, 'actions', String(at)], retry, inside))
  const found = [
    ...wrongName,
    ...patterns.found,
    ...compiled.found.map((one) => ({ ...one, path: [...above, ...one.path] })),
    ...useless,
    ...alertWithoutAddress(read('on_failure'), above, surroundings),
    ...checked.flatMap((one) => one.found),
    ...findEqualNames(actions, [...above, 'actions']),
  ]
  if (found.length > 0 || wrongKeys.size > 0) return { found, config: undefined }
  const configs = checked.map(({ config }) => config as ActionConfig)
  return { found, config: toObserver(name, given as ObserverInput, configs, compiled) }
}

function badName(name: string, above: Path): Found[] {
  const [found] = findMistakes(fields.name, name)
  return found ? [{ path: above, at: 'key', message: `cannot be the name of an observer: it ${found.message}` }] : []
}

function compileExpressions(
  { condition, orderBy, strict }: { condition: string | undefined; orderBy: string | undefined; strict: boolean },
  options: ExpressionOptions,
  { compileCondition, compileExpression }: ObserverSurroundings,
) {
  const found: Found[] = []
  const compileAt = <T>(key: string, compile: () => T): T | null => {
    try {
      return compile()
    } catch (error) {
      found.push(...toFound(error, [key]))
      return null
    }
  }
  return {
    condition:
      condition === undefined || !compileCondition
        ? null
        : compileAt('condition', () => compileCondition(condition, { ...options, strict })),
    orderBy:
      orderBy === undefined || orderBy === 'aggregate' || !compileExpression
        ? null
        : compileAt('order_by', () => compileExpression(orderBy, options)),
    found,
  }
}

function uselessRetryKeys(retry: ObserverInput['retry'], path: Path): Found[] {
  if (retry?.schedule === undefined) return []
  const useless = (['initial_delay', 'backoff'] as const).filter((key) => retry[key] !== undefined)
  return useless.map((key) => ({
    path: [...path, key],
    at: 'key',
    message: 'has no effect beside schedule, which lists every wait. Remove one of the two.',
  }))
}

function alertWithoutAddress(onFailure: string | undefined, above: Path, { present }: ObserverSurroundings): Found[] {
  if (onFailure !== 'alert' || present.hasFailureAlerts) return []
  const message = 'has nowhere to send alerts to. Add [failure_alerts] with slack or email.'
  return [{ path: [...above, 'on_failure'], at: 'value', message }]
}
