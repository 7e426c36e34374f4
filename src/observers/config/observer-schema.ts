/**
 * One observer, but for its actions: those have keys of their own by type. The file writes snake_case, TypeScript
 * camelCase; it is one schema under two spellings, so that a mistake is told in the words of whoever made it.
 */
import { z } from 'zod'
import { fields } from '../../configuration/index.ts'

const { duration, needed, rate, setting, text } = fields

const retryShape = {
  max_attempts: setting(z.int().min(1).max(1_000), {
    description: 'All attempts, the first one included.',
    fallback: 3,
  }),
  initial_delay: setting(duration, { description: 'The wait after the first attempt.', fallback: '1s' }),
  max_delay: setting(duration, { description: 'No wait is longer.', fallback: '60s' }),
  backoff: setting(z.enum(['exponential', 'linear', 'fixed']), {
    description: 'How the waits grow.',
    fallback: 'exponential',
  }),
  schedule: setting(z.array(duration).min(1), {
    description: 'The waits one by one, instead of initial_delay and backoff.',
    expects: 'must be a list of durations, like ["5s", "30s", "2m"]',
  }),
}

const patterns = z.union([text, z.array(text).min(1)])

const observerShape = {
  on: setting(patterns, {
    description: 'Patterns of event types; without it the name of the observer is the event type.',
    expects: 'must be a pattern like "order.placed" or "order.*", or a list of them',
  }),
  entity: setting(text, { description: 'Only events of this aggregate type.' }),
  condition: setting(text, { description: 'A CEL expression that must hold.' }),
  retry: z
    .strictObject(retryShape)
    .meta({ description: 'How often and how long to try; replaces the default of the action types.' })
    .optional(),
  on_failure: setting(z.enum(['dlq', 'alert', 'log']), {
    description:
      'After the last attempt: a dead letter; a dead letter and an alert; or only a line in the log, a metric and a record.',
    fallback: 'dlq',
  }),
  enabled: setting(z.boolean(), { description: 'False: it is checked and does nothing.', fallback: true }),
  sequential: setting(z.boolean(), {
    description: 'True: an action starts when the one before it is done or dead.',
    fallback: false,
  }),
  order_by: setting(text, {
    description: 'Later events of a key wait behind one that waits or is dead: "aggregate", or a CEL expression.',
    expects: 'must be "aggregate" or a CEL expression',
  }),
  concurrency: setting(z.int().min(1).max(10_000), {
    description: 'Actions of this observer at once, in all processes.',
  }),
  rate: setting(rate, { description: 'Actions of this observer in a span of time, in all processes.' }),
  timeout: setting(duration, { description: 'How long one attempt of an action may take.' }),
  strict: setting(z.boolean(), {
    description:
      'True: a field that is absent in a comparison is a failure rather than a condition that does not hold.',
    fallback: false,
  }),
  actions: needed(z.array(z.unknown()).min(1), {
    description: 'What to do, in this order.',
    expects: 'must be a list of at least one action',
  }),
}

export const observerSchema = z.strictObject(observerShape)

/** As data accepted by the schema. The actions are still as written. */
export type ObserverInput = z.infer<typeof observerSchema>

export const camelCaseSchema = z.strictObject(
  renameKeys({ ...observerShape, retry: z.strictObject(renameKeys(retryShape, toCamelCase)).optional() }, toCamelCase),
)

/** The keys of an observer written in TypeScript as the file has them. What the values hold is left alone. */
export function toFileKeys(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { retry } = options
  const own = renameKeys(options, toFileKey)
  return isTable(retry) ? { ...own, retry: renameKeys(retry, toFileKey) } : own
}

/** A path in the file as TypeScript writes it. Below the actions nothing is renamed. */
export function toCamelCasePath([key, ...rest]: readonly PropertyKey[]): PropertyKey[] {
  return [toCamelCase(String(key)), ...(key === 'retry' ? rest.map((part) => toCamelCase(String(part))) : rest)]
}

function toCamelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function toFileKey(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function renameKeys<T>(table: Readonly<Record<string, T>>, rename: (key: string) => string): Record<string, T> {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [rename(key), value]))
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
