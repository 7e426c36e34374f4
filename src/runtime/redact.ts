import { isSecretName, MASK, maskSecrets } from './mask.ts'

/** What is told of an error: enough to find it, nothing that quotes a row. Postgres puts row values into `detail`. */
export interface ErrorSummary {
  name: string
  code?: string
  message: string
  stack?: string
  cause?: ErrorSummary
}

/** Never throws, whatever was thrown: it is called where an error is being dealt with already. */
export function summarizeError(error: unknown, { stack = false, depth = 0 } = {}): ErrorSummary {
  try {
    if (!(error instanceof Error)) return { name: 'Error', message: clean(toText(error)) }
    const { cause, code } = error as { cause?: unknown; code?: unknown }
    return {
      name: error.name,
      ...(isCode(code) && { code: String(code) }),
      message: clean(messageOf(error)),
      ...(stack && error.stack !== undefined && { stack: clean(error.stack) }),
      ...(cause !== undefined && depth < 3 && { cause: summarizeError(cause, { stack, depth: depth + 1 }) }),
    }
  } catch {
    return { name: 'Error', message: 'an error that cannot be shown' }
  }
}

/**
 * A copy that is safe to print: values under secret names masked, secrets taken out of text, errors summarised, and
 * plain JSON all the way down (positions are bigints). Never throws, whatever it is given.
 */
export function redact(fields: object, options: { stack?: boolean } = {}): Record<string, unknown> {
  try {
    const copy = toPlain(fields, options, [])
    return fields instanceof Error ? { err: copy } : (copy as Record<string, unknown>)
  } catch {
    return { unprintable: true }
  }
}

const DEEPEST = 6
const LONGEST_LIST = 50
const LONGEST_TEXT = 8192

function toPlain(value: unknown, options: { stack?: boolean }, parents: readonly object[]): unknown {
  if (typeof value === 'string') return clean(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error) return summarizeError(value, options)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? '[invalid date]' : value.toISOString()
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (parents.includes(value)) return '[circular]'
  if (parents.length >= DEEPEST) return '[deep]'

  const path = [...parents, value]
  if (Array.isArray(value)) {
    const items = value.slice(0, LONGEST_LIST).map((item) => toPlain(item, options, path))
    return value.length > LONGEST_LIST ? [...items, `[${value.length - LONGEST_LIST} more]`] : items
  }
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`
  // An event knows itself what may be said of it.
  const { toLog } = value as { toLog?: unknown }
  const entries = Object.entries(typeof toLog === 'function' ? (toLog.call(value) as object) : value)
  // fromEntries defines properties rather than assigning them, so a key named __proto__ stays a key.
  return Object.fromEntries(
    entries.map(([key, item]) => [key, item != null && isSecretName(key) ? MASK : toPlain(item, options, path)]),
  )
}

/** A refused connection to a host with two addresses is an AggregateError with an empty message. */
function messageOf(error: Error): string {
  if (error.message !== '') return String(error.message)
  const [first] = error instanceof AggregateError ? error.errors : []
  return first instanceof Error ? first.message : ''
}

function toText(thrown: unknown): string {
  return typeof thrown === 'object' || typeof thrown === 'function' ? `thrown: ${typeof thrown}` : String(thrown)
}

function isCode(code: unknown): code is string | number {
  return typeof code === 'string' || typeof code === 'number'
}

// Masked first: a cut inside a connection string would hide the @ by which its password is found.
function clean(text: string): string {
  const masked = maskSecrets(text)
  return masked.length > LONGEST_TEXT ? `${masked.slice(0, LONGEST_TEXT)}…` : masked
}
