/** An observer as the code wants it: checked, compiled, camelCase, with every default filled in. */

import type { Condition, Expression } from '../../conditions/index.ts'
import { fields, type Rate } from '../../configuration/index.ts'
import { parseRetry, type RetryOptions, type RetryPolicy, toMs } from '../../runtime/index.ts'
import type { ActionType, PreparedAction } from '../action.ts'
import { hashOf } from './hash.ts'
import type { ObserverInput } from './observer-schema.ts'

export interface ObserverConfig {
  readonly name: string
  /** Patterns, at least one. */
  readonly on: readonly string[]
  readonly entity: string | null
  /** As written; `compiled` has what runs. */
  readonly condition: string | null
  readonly actions: readonly ActionConfig[]
  readonly onFailure: 'dlq' | 'alert' | 'log'
  readonly enabled: boolean
  readonly sequential: boolean
  /** `aggregate`, or an expression. */
  readonly orderBy: string | null
  readonly concurrency: number | null
  readonly rate: Rate | null
  /** Over the timeout that an action has by itself. */
  readonly timeoutMs: number | null
  readonly strict: boolean
  /** Of everything above: two versions of an observer with the same hash behave the same. */
  readonly hash: string
  readonly compiled: CompiledObserver
}

export interface CompiledObserver {
  readonly condition: Condition | null
  readonly orderBy: Expression | null
}

export interface ActionConfig {
  readonly name: string
  readonly type: string
  /** The keys of its type, checked, with their defaults; secrets are `Secret`. */
  readonly config: unknown
  readonly retry: RetryPolicy
  /** Null when nobody prepares actions here: `config check` knows no handlers. */
  readonly prepared: PreparedAction | null
}

/** Other people's services come back after hours, our own after seconds. */
export const DEFAULT_RETRY: Readonly<Record<ActionType['defaultRetry'], RetryOptions>> = {
  local: { maxAttempts: 3, initialDelay: '1s', maxDelay: '60s', backoff: 'exponential' },
  service: { schedule: ['5s', '30s', '2m', '10m', '30m', '1h', '4h'] },
}

export function toObserver(
  name: string,
  input: ObserverInput,
  actions: readonly ActionConfig[],
  compiled: CompiledObserver,
): ObserverConfig {
  const { on = name, entity = null, condition = null, order_by: orderBy = null, concurrency = null } = input
  const written = {
    name,
    on: typeof on === 'string' ? [on] : on,
    entity,
    condition,
    actions,
    onFailure: input.on_failure ?? 'dlq',
    enabled: input.enabled ?? true,
    sequential: input.sequential ?? false,
    orderBy,
    concurrency,
    rate: input.rate === undefined ? null : fields.parseRate(input.rate),
    timeoutMs: input.timeout === undefined ? null : toMs(input.timeout, `observers.${name}.timeout`),
    strict: input.strict ?? false,
  }
  return { ...written, hash: hashOf(written), compiled }
}

/** A given `retry` replaces the default of the type whole; what it leaves out is as for any retry. */
export function toRetry(
  given: ObserverInput['retry'],
  type: Pick<ActionType, 'defaultRetry'>,
  isSingleAttempt: boolean,
): RetryPolicy {
  const policy = {
    jitter: JITTER,
    ...parseRetry(given === undefined ? DEFAULT_RETRY[type.defaultRetry] : toOptions(given)),
  }
  return isSingleAttempt ? { ...policy, maxAttempts: 1 } : policy
}

const JITTER = 0.25

function toOptions({ max_attempts, initial_delay, max_delay, backoff, schedule }: NonNullable<ObserverInput['retry']>) {
  return {
    ...(max_attempts !== undefined && { maxAttempts: max_attempts }),
    ...(initial_delay !== undefined && { initialDelay: initial_delay }),
    ...(max_delay !== undefined && { maxDelay: max_delay }),
    ...(backoff !== undefined && { backoff }),
    ...(schedule !== undefined && { schedule }),
  }
}
