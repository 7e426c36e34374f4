/** Actions with everything real around them: templates, network, clock. */
import { onTestFinished } from 'vitest'
import { scopeOf } from '../../../src/conditions/index.ts'
import { type ActionRequest, idempotencyKeyOf, type PreparedAction } from '../../../src/observers/action.ts'
import {
  type ActionContextOptions,
  type ClosableActionContext,
  createActionContext,
  createActionTypes,
  createTemplateCompiler,
  findActionType,
} from '../../../src/observers/actions/index.ts'
import { ObserverError } from '../../../src/observers/observer-error.ts'
import { silentLogger, systemClock } from '../../../src/runtime/index.ts'
import { type TestEventInput, testEvent } from '../../../src/testing/test-event.ts'

function contextFor(options: Partial<ActionContextOptions> = {}): ClosableActionContext {
  const context = createActionContext({
    templates: createTemplateCompiler(),
    providers: {},
    allow: ['127.0.0.1'],
    handlers: new Map(),
    database: { transaction: () => Promise.reject(new Error('there is no database in this test')) },
    logger: silentLogger,
    clock: systemClock,
    schema: 'test',
    ...options,
  })
  onTestFinished(() => context.close())
  return context
}

/** As the loader does it: check the keys, then prepare. */
export function prepare(
  type: string,
  config: Record<string, unknown>,
  options: Partial<ActionContextOptions> = {},
): PreparedAction {
  const actionType = findActionType(createActionTypes(), type)
  return actionType.prepare(actionType.schema.parse(config), contextFor(options))
}

export interface RequestInput extends TestEventInput {
  readonly type?: string
  readonly observer?: string
  readonly action?: string
  readonly attempt?: number
  readonly signal?: AbortSignal
  readonly env?: Record<string, string>
}

export function requestFor(input: RequestInput = {}): ActionRequest {
  const { type = 'order.placed', observer = 'orders', action = 'webhook', attempt = 1, signal, env, ...fields } = input
  const event = testEvent(type, { id: 'evt-1', ...fields })
  return {
    event,
    observer,
    action,
    attempt,
    idempotencyKey: idempotencyKeyOf(event.id, observer, action),
    createdAt: new Date(),
    signal: signal ?? new AbortController().signal,
    scope: scopeOf(event, env),
  }
}

/** The `ObserverError` that `work` ends with; anything else fails the test. */
export async function failureOf(work: () => unknown): Promise<ObserverError> {
  try {
    await work()
  } catch (error) {
    if (error instanceof ObserverError) return error
    throw error
  }
  throw new Error('it was expected to fail, and it succeeded')
}
