/** The types of actions there are. */
import { closest } from '../../events/index.ts'
import type { ActionType } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { custom } from './custom.ts'
import { database } from './database.ts'
import { email } from './email.ts'
import { log } from './log.ts'
import { slack } from './slack.ts'
import { webhook } from './webhook.ts'

export type ActionTypes = ReadonlyMap<string, ActionType>

/** The built-in types, and those of the application, which cannot replace one of them. */
export function createActionTypes(own: readonly ActionType[] = []): ActionTypes {
  const types = new Map<string, ActionType>()
  for (const type of [webhook, slack, email, database, log, custom, ...own] as readonly ActionType[]) {
    const taken = types.has(type.type) || NOT_AVAILABLE.has(type.type)
    if (!taken) types.set(type.type, type)
    else {
      throw new ObserverError(
        'OB012',
        `The action type "${type.type}" exists already, so another one is refused. Choose another name for yours.`,
      )
    }
  }
  return types
}

/** Throws OB012 for a type that does not exist: an action that cannot be done is refused when it is loaded. */
export function findActionType(types: ActionTypes, name: string): ActionType {
  const found = types.get(name)
  if (found !== undefined) return found
  throw new ObserverError('OB012', unknownType(types, name), { path: ['type'] })
}

/** Planned, with their keys reserved; until they do something they are refused rather than pretended. */
const NOT_AVAILABLE: ReadonlySet<string> = new Set(['sms', 'push', 'search', 'cache'])

function unknownType(types: ActionTypes, name: string): string {
  if (NOT_AVAILABLE.has(name)) {
    return (
      `Actions of type "${name}" are not available yet: there is no provider for them, so nothing would be sent. ` +
      'Use a custom action, or a webhook to the service.'
    )
  }
  const nearest = closest(name, types.keys())
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
  return `There is no action type "${name.slice(0, 60)}".${hint} There are: ${[...types.keys()].join(', ')}.`
}
