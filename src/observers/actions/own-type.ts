/**
 * Action types that others wrote. They are held to the shape of ours when they are registered, and what they throw is
 * told as ours is: with a code, without secrets, and as a mistake in the file where it is one.
 */
import { AftercommitError } from '../../errors.ts'
import { isThenable, maskSecrets, summarizeError } from '../../runtime/index.ts'
import { causedBy } from '../../subscriptions/index.ts'
import type { ActionContext, ActionRequest, ActionResult, ActionType, PreparedAction } from '../action.ts'
import { CallFailed, RefusedAddress } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { toObserverError } from './custom.ts'

/** What is wrong with something that should be an action type, to follow its name; undefined when nothing is. */
export function shapeProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'is not an object made with defineActionType'
  const { type, schema, describe, defaultRetry, prepare } = value as Partial<Record<keyof ActionType, unknown>>
  if (typeof type !== 'string' || !/^[a-z][a-z0-9_-]{0,62}$/.test(type))
    return 'has a `type` that is not a word of small letters, digits, _ and -'
  if (typeof schema !== 'object' || schema === null || !('safeParse' in schema) || !('_zod' in schema))
    return 'has a `schema` that is not one of zod 4'
  if (describe !== undefined && (typeof describe !== 'string' || describe === '' || describe.length > 200))
    return 'has a `describe` that is not one line of text'
  if (defaultRetry !== 'service' && defaultRetry !== 'local')
    return 'has a `defaultRetry` that is neither "service" nor "local"'
  return typeof prepare === 'function' ? undefined : 'has no function `prepare`'
}

/** Throws errors with a `path` below the action, whatever the type throws. */
export function prepareOwn<Config>(type: ActionType<Config>, config: Config, context: ActionContext): PreparedAction {
  const what = `The action "${type.type}"`
  let prepared: PreparedAction
  try {
    prepared = type.prepare(config, context)
  } catch (error) {
    if (error instanceof AftercommitError) throw error
    throw new ObserverError('OB012', `${what} cannot be prepared: ${summarizeError(error).message}`, { cause: error })
  }
  if (typeof prepared?.run !== 'function' || typeof prepared.preview !== 'function')
    throw new ObserverError('OB012', `${what} was not prepared to anything with run and preview. Correct its package.`)
  const { destination = null, singleAttempt = false, timeoutMs } = prepared
  return {
    destination,
    singleAttempt,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(prepared.toTimeout && { toTimeout: () => prepared.toTimeout!() }),
    run: (request) => runOwn(type.type, prepared, request),
    preview: (request) => prepared.preview(request),
  }
}

function runOwn(type: string, prepared: PreparedAction, request: ActionRequest): ActionResult | Promise<ActionResult> {
  const fail = (error: unknown): never => {
    throw request.signal.aborted ? error : toOurs(`The action "${type}"`, error)
  }
  const check = (result: ActionResult) => toResult(type, result)
  try {
    const result = causedBy(request.event, () => prepared.run(request))
    return isThenable(result) ? Promise.resolve(result).then(check).catch(fail) : check(result)
  } catch (error) {
    return fail(error)
  }
}

function toResult(type: string, result: ActionResult): ActionResult {
  const { success, message, durationMs } = result ?? {}
  if (success !== true || typeof message !== 'string' || !(durationMs >= 0))
    throw new AftercommitError('BAD_STATE', 'it returned something else than a result with success: true')
  return { ...result, actionType: type, message: maskSecrets(message).slice(0, 500) }
}

function toOurs(what: string, error: unknown): ObserverError {
  if (error instanceof RefusedAddress) {
    const advice = 'If that is meant, add the address to [network] allow.'
    return new ObserverError('OB012', `${what} sent nothing, because ${error.message}. ${advice}`)
  }
  if (error instanceof CallFailed)
    return new ObserverError('OB004', `${what} failed on the way (${error.code}).`, { transient: true })
  if (error instanceof AftercommitError && error.code === 'OB003' && !(error instanceof ObserverError))
    return new ObserverError('OB003', `${what} was not done: ${error.message}`, { cause: error })
  return toObserverError(what, error)
}
