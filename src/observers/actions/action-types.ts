/** The types of actions there are. */
import { closest } from '../../events/index.ts'
import type { ActionContext, ActionType, PreparedAction } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { cache } from './cache.ts'
import { custom } from './custom.ts'
import { database } from './database.ts'
import { email } from './email.ts'
import { log } from './log.ts'
import { prepareOwn, shapeProblem } from './own-type.ts'
import { push } from './push.ts'
import { search } from './search.ts'
import { slack } from './slack.ts'
import { sms } from './sms.ts'
import { webhook } from './webhook.ts'

export type ActionTypes = ReadonlyMap<string, ActionType>

const BUILT_IN = [webhook, slack, email, sms, push, search, cache, database, log, custom] as readonly ActionType[]

/** The built-in types, and those of the application, which cannot replace one of them. */
export function createActionTypes(own: readonly ActionType[] = []): ActionTypes {
  const types = new Map<string, ActionType>()
  for (const type of [...BUILT_IN, ...own]) {
    const problem = shapeProblem(type) ?? takenProblem(types, type)
    if (problem !== undefined) throw new ObserverError('OB012', `The action type "${type?.type}" ${problem}.`)
    types.set(type.type, type)
  }
  return types
}

/** What is wrong with the name of a type beside these, to follow it. */
export function takenProblem(types: ActionTypes, { type }: ActionType): string | undefined {
  return types.has(type) ? 'exists already, so another one is refused. Choose another name for yours' : undefined
}

/** Prepares, whoever wrote the type. Throws errors with a `path` below the action. */
export function prepareAction(type: ActionType, config: unknown, context: ActionContext): PreparedAction {
  return BUILT_IN.includes(type) ? type.prepare(config, context) : prepareOwn(type, config, context)
}

/** Throws OB012 for a type that does not exist: an action that cannot be done is refused when it is loaded. */
export function findActionType(types: ActionTypes, name: string): ActionType {
  const found = types.get(name)
  if (found !== undefined) return found
  throw new ObserverError('OB012', unknownType(types, name), { path: ['type'] })
}

function unknownType(types: ActionTypes, name: string): string {
  const nearest = closest(name, types.keys())
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
  return `There is no action type "${name.slice(0, 60)}".${hint} There are: ${[...types.keys()].join(', ')}.`
}
