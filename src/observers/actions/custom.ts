/** `type = "custom"`: a handler that the application registered under a name. */
import { z } from 'zod'
import { AftercommitError } from '../../errors.ts'
import { closest } from '../../events/index.ts'
import { formatDuration, isThenable, summarizeError, toMs } from '../../runtime/index.ts'
import { causedBy, GiveUp, isHopeless, RetryAfter } from '../../subscriptions/index.ts'
import type {
  ActionContext,
  ActionRequest,
  ActionType,
  CustomContext,
  CustomHandler,
  PreparedAction,
} from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { createMistakes } from './mistakes.ts'
import { rendering } from './rendering.ts'
import { durationText } from './schema-parts.ts'

const schema = z.strictObject({
  handler: z.string().min(1).describe('the name given to ac.observers.action()'),
  config: z.unknown().optional().describe('handed to the handler, its templates rendered'),
  timeout: durationText.default('30s'),
})

type CustomConfig = z.infer<typeof schema>

export const custom: ActionType<CustomConfig> = { type: 'custom', schema, defaultRetry: 'local', prepare }

function prepare({ handler: name, config, timeout }: CustomConfig, context: ActionContext): PreparedAction {
  const { templates, handlers, clock } = context
  const mistakes = createMistakes()
  const handler = handlers.get(name)
  if (handler === undefined) mistakes.add(['handler'], unknownHandler(name, handlers))
  const tree = mistakes.at(['config'], () => templates.tree(config ?? null, 'config'))
  mistakes.throwIfAny()

  const what = `The custom action "${name}"`
  const timeoutMs = toMs(timeout, 'timeout')
  const configFor = ({ scope }: Pick<ActionRequest, 'scope'>) => rendering(what, () => tree.render(scope))

  return {
    destination: null,
    singleAttempt: false,
    timeoutMs,
    toTimeout: () => timedOut(what, timeoutMs),
    run(request) {
      const began = clock.monotonic()
      const done = () => ({
        actionType: 'custom',
        success: true,
        message: `${name} returned`,
        durationMs: clock.monotonic() - began,
      })
      const fail = (error: unknown): never => {
        throw toObserverError(what, error)
      }
      const call = new CustomCall(request, configFor(request))
      let result: unknown
      try {
        result = causedBy(request.event, () => handler!(request.event, call))
      } catch (error) {
        return fail(error)
      }
      // A handler that is done at once costs no promise.
      return isThenable(result) ? Promise.resolve(result).then(done, fail) : done()
    },
    preview: (request) => {
      return { actionType: 'custom', destination: null, content: { handler: name, config: configFor(request) } }
    },
  }
}

/** What a handler is told. The signal and the key are made when it looks at them. */
class CustomCall implements CustomContext {
  readonly config: unknown
  readonly observer: string
  readonly action: string
  readonly attempt: number
  readonly createdAt: Date
  readonly #request: ActionRequest

  constructor(request: ActionRequest, config: unknown) {
    this.#request = request
    this.config = config
    this.observer = request.observer
    this.action = request.action
    this.attempt = request.attempt
    this.createdAt = request.createdAt
  }

  get idempotencyKey(): string {
    return this.#request.idempotencyKey
  }

  get signal(): AbortSignal {
    return this.#request.signal
  }
}

/** What code of others threw. */
export function toObserverError(what: string, error: unknown): ObserverError {
  if (error instanceof ObserverError) return error
  const { message } = summarizeError(error)
  if (error instanceof GiveUp) {
    return new ObserverError('OB004', `${what} gave up: ${message}`, { cause: error })
  }
  if (error instanceof RetryAfter) {
    const retryAfterMs = error.delayMs
    return new ObserverError('OB004', `${what} asks for time: ${message}`, {
      transient: true,
      retryAfterMs,
      cause: error,
    })
  }
  return new ObserverError('OB004', `${what} failed: ${message}`, { transient: !isHopeless(error), cause: error })
}

function timedOut(what: string, timeoutMs: number): ObserverError {
  return new ObserverError(
    'OB004',
    `${what} was still running after ${formatDuration(timeoutMs)}, so this attempt failed. Its signal has fired; make it ` +
      'end then, or raise `timeout`.',
    { transient: true, cause: new AftercommitError('TIMED_OUT', `${what} took too long.`) },
  )
}

function unknownHandler(name: string, handlers: ReadonlyMap<string, CustomHandler>): string {
  const nearest = closest(name, handlers.keys())
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
  return `No handler named "${name}" is registered.${hint} Register it with ac.observers.action("${name}", …) first.`
}
