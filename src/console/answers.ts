/** Answers as the console sends them: JSON without a cache, errors with a stable code, and headers that allow nothing else. */
import { AftercommitError } from '../errors.ts'
import { stringifyJson, toPlain } from '../events/index.ts'

/** Scripts and styles come from the console alone; nothing is embedded, and nothing is fetched from elsewhere. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}

export class Refusal extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function json(
  value: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Response {
  const text = stringifyJson(value, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'answer' })
  return new Response(text, {
    status,
    headers: {
      ...SECURITY_HEADERS,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      ...headers,
    },
  })
}

/** Our own data: keys in snake_case, positions as text. */
export function plain(value: unknown): unknown {
  return toPlain(value)
}

/** An error of ours keeps its code and its words; of any other one nothing is told. */
export function toErrorAnswer(error: unknown): Response {
  if (error instanceof Refusal)
    return json({ error: { code: error.code, message: error.message } }, { status: error.status })
  if (error instanceof AftercommitError) {
    const status = STATUS[error.code] ?? (error.code.startsWith('BAD_') ? 400 : 409)
    return json({ error: { code: error.code, message: error.message } }, { status })
  }
  // A driver's words may name hosts, roles and values: they are for the log of the application.
  const isGone = isAway((error as { code?: unknown }).code)
  const message = isGone
    ? 'The database does not answer.'
    : 'The console could not answer. `npx aftercommit doctor` says whether the database is as it should be.'
  return json(
    { error: { code: isGone ? 'DATABASE_UNREACHABLE' : 'INTERNAL', message } },
    { status: isGone ? 503 : 500 },
  )
}

const STATUS: Readonly<Record<string, number>> = {
  EVENT_NOT_FOUND: 404,
  UNKNOWN_SUBSCRIPTION: 404,
  UNKNOWN_DESTINATION: 404,
  CONNECTION_FAILED: 503,
  DATABASE_UNREACHABLE: 503,
  POOL_EXHAUSTED: 503,
  SCHEMA_MISSING: 503,
}

function isAway(code: unknown): boolean {
  return typeof code === 'string' && (/^(ECONN|ENOTFOUND|ETIMEDOUT|EPIPE)/.test(code) || /^(57P|08)/.test(code))
}
