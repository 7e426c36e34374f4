/** What changes from one configuration to the next, for a person to read before or after a reload. Secrets are masked. */
import { isSensitive, pathText, Secret, type Table, withSecrets } from '../../configuration/index.ts'
import { ExactNumber } from '../../events/index.ts'
import { maskSecrets } from '../../runtime/index.ts'
import type { CheckedConfiguration } from './check-configuration.ts'
import { isTable } from './observer-schema.ts'

export interface ConfigurationDiff {
  readonly isEmpty: boolean
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly ObserverDiff[]
  readonly settings: readonly ChangedSetting[]
}

export interface ObserverDiff {
  readonly name: string
  readonly settings: readonly ChangedSetting[]
  readonly addedActions: readonly string[]
  readonly removedActions: readonly string[]
  readonly changedActions: readonly { readonly name: string; readonly settings: readonly ChangedSetting[] }[]
}

/** As text for people; null where there was or is nothing. */
export interface ChangedSetting {
  readonly path: string
  readonly before: string | null
  readonly after: string | null
}

/** In the words of the file: what was left to a default and still is has not changed. */
export function diffConfigurations(before: CheckedConfiguration, after: CheckedConfiguration): ConfigurationDiff {
  const { observers: earlier, ...settingsBefore } = writtenIn(before)
  const { observers: later, ...settingsAfter } = writtenIn(after)
  const { added, removed, kept } = compareTables(toTable(earlier), toTable(later))
  const changed = kept
    .map((name) => diffObserver(name, toTable(earlier)[name], toTable(later)[name]))
    .filter(hasChanges)
  const settings = diffSettings(settingsBefore, settingsAfter, [])
  const isEmpty = [added, removed, changed, settings].every(({ length }) => length === 0)
  return { isEmpty, added, removed, changed, settings }
}

function writtenIn({ written: { data, secrets } }: CheckedConfiguration): Table {
  return withSecrets(data, secrets)
}

function diffObserver(name: string, before: unknown, after: unknown): ObserverDiff {
  const [{ actions: earlier, ...settingsBefore }, { actions: later, ...settingsAfter }] = [
    toTable(before),
    toTable(after),
  ]
  const [actionsBefore, actionsAfter] = [byName(earlier), byName(later)]
  const { added, removed, kept } = compareTables(actionsBefore, actionsAfter)
  const above = ['observers', name]
  const order = { before: kept, after: Object.keys(actionsAfter).filter((action) => kept.includes(action)) }
  return {
    name,
    settings: diffSettings(
      { ...settingsBefore, actions: order.before },
      { ...settingsAfter, actions: order.after },
      above,
    ),
    addedActions: added,
    removedActions: removed,
    changedActions: kept.flatMap((action) => {
      const settings = diffSettings(actionsBefore[action], actionsAfter[action], [...above, 'actions', action])
      return settings.length === 0 ? [] : [{ name: action, settings }]
    }),
  }
}

function hasChanges({ settings, addedActions, removedActions, changedActions }: ObserverDiff): boolean {
  return [settings, addedActions, removedActions, changedActions].some(({ length }) => length > 0)
}

function byName(actions: unknown): Table {
  const named = (Array.isArray(actions) ? actions : []).map((action) => [String(action.name ?? action.type), action])
  return Object.assign(Object.create(null), Object.fromEntries(named))
}

function toTable(value: unknown): Table {
  return isTable(value) ? value : {}
}

/** `kept` is in the order it had before. */
function compareTables(before: Table, after: Table) {
  return {
    added: Object.keys(after).filter((name) => !Object.hasOwn(before, name)),
    removed: Object.keys(before).filter((name) => !Object.hasOwn(after, name)),
    kept: Object.keys(before).filter((name) => Object.hasOwn(after, name)),
  }
}

interface Leaf {
  readonly path: readonly string[]
  readonly value: unknown
}

function diffSettings(before: unknown, after: unknown, above: readonly string[]): ChangedSetting[] {
  const earlier = leavesOf(before, above)
  const later = leavesOf(after, above)
  return [...new Set([...earlier.keys(), ...later.keys()])].flatMap((path) => {
    const [one, other] = [earlier.get(path), later.get(path)]
    return identity(one) === identity(other) ? [] : [{ path, before: show(one), after: show(other) }]
  })
}

function leavesOf(value: unknown, path: readonly string[], leaves = new Map<string, Leaf>()): Map<string, Leaf> {
  const isBranch =
    typeof value === 'object' && value !== null && !(value instanceof Secret || value instanceof ExactNumber)
  if (isBranch) for (const [key, item] of Object.entries(value)) leavesOf(item, [...path, key], leaves)
  else leaves.set(pathText(path), { path, value })
  return leaves
}

/** A secret whose variable has another value now has changed too. */
function identity(leaf: Leaf | undefined): string | undefined {
  if (leaf === undefined) return undefined
  return leaf.value instanceof Secret ? `${leaf.value} ${leaf.value.reveal()}` : `${typeof leaf.value} ${leaf.value}`
}

function show(leaf: Leaf | undefined): string | null {
  if (leaf === undefined) return null
  if (leaf.value instanceof Secret) return String(leaf.value)
  return isSensitive(leaf.path) ? '***' : maskSecrets(String(leaf.value))
}
