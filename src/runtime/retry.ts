import { AftercommitError } from '../errors.ts'
import type { Backoff, BackoffStrategy } from './backoff.ts'
import { type Duration, toMs } from './duration.ts'

/** How often and how long to try, as users write it. A missing key has its default; nothing is inherited. */
export interface RetryOptions {
  /** All tries, the first one included. */
  maxAttempts?: number
  initialDelay?: Duration
  maxDelay?: Duration
  backoff?: BackoffStrategy
  /** The delays one by one, instead of initialDelay and backoff. Without maxAttempts each is used once. */
  schedule?: readonly Duration[]
}

export interface RetryPolicy extends Backoff {
  maxAttempts: number
}

const DEFAULTS = { maxAttempts: 3, initialDelay: '1s', maxDelay: '60s', backoff: 'exponential' } as const
const STRATEGIES: readonly string[] = ['exponential', 'linear', 'fixed'] satisfies BackoffStrategy[]
const KEYS = ['maxAttempts', 'initialDelay', 'maxDelay', 'backoff', 'schedule']

/** `setting` is where the user wrote it (`retry`, `observers.mail.retry`); errors name it. */
export function parseRetry(options: RetryOptions = {}, setting = 'retry'): RetryPolicy {
  const unknown = Object.keys(options).find((key) => !KEYS.includes(key))
  if (unknown !== undefined) refuse(`${setting}.${unknown} is not a setting of a retry. Known are ${KEYS.join(', ')}.`)

  const scheduleMs = parseSchedule(options, setting)
  const maxAttempts = options.maxAttempts ?? (scheduleMs ? scheduleMs.length + 1 : DEFAULTS.maxAttempts)
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    refuse(`${setting}.maxAttempts must be a whole number of at least 1; it counts the first try.`)
  }
  const strategy = options.backoff ?? DEFAULTS.backoff
  if (!STRATEGIES.includes(strategy)) refuse(`${setting}.backoff must be one of ${STRATEGIES.join(', ')}.`)

  const maxDelay = options.maxDelay === undefined ? undefined : toMs(options.maxDelay, `${setting}.maxDelay`)
  return {
    maxAttempts,
    strategy,
    initialMs: toMs(options.initialDelay ?? DEFAULTS.initialDelay, `${setting}.initialDelay`),
    maxMs: maxDelay ?? (scheduleMs ? Math.max(...scheduleMs) : toMs(DEFAULTS.maxDelay, `${setting}.maxDelay`)),
    ...(scheduleMs && { scheduleMs }),
  }
}

function parseSchedule(options: RetryOptions, setting: string): number[] | undefined {
  const { schedule } = options
  if (schedule === undefined) return undefined
  for (const key of ['initialDelay', 'backoff'] as const) {
    if (options[key] !== undefined) {
      refuse(`${setting}.schedule lists every delay itself, so ${setting}.${key} would have no effect. Remove one.`)
    }
  }
  if (!Array.isArray(schedule) || schedule.length === 0) {
    refuse(`${setting}.schedule must list at least one delay, like ["5s", "30s"].`)
  }
  return schedule.map((delay, index) => toMs(delay, `${setting}.schedule[${index}]`))
}

function refuse(message: string): never {
  throw new AftercommitError('BAD_OPTION', message)
}
