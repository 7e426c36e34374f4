import { AftercommitError } from '../../errors.ts'

/**
 * Redis could not do what it was asked. Only a word tells why: what the client and the server say may quote the address
 * or the password, and a dead letter keeps messages.
 */
export class RedisError extends AftercommitError {
  /** `ECONNREFUSED`, `TIMED_OUT`, or the first word of the server's answer, such as `WRONGPASS` or `READONLY`. */
  readonly reason: string

  constructor(reason: string) {
    super('SINK_UNAVAILABLE', `Redis did not answer as it should (${reason}). It is tried again.`)
    this.reason = reason
  }
}

export function toRedisError(error: unknown): RedisError {
  if (error instanceof RedisError) return error
  const { code, message, errors } = (error ?? {}) as NodeJS.ErrnoException & { errors?: unknown[] }
  // A name with several addresses fails with one error for each.
  if (code === undefined && Array.isArray(errors) && errors.length > 0) return toRedisError(errors[0])
  if (typeof code === 'string' && WORD.test(code)) return new RedisError(code)
  // The client's own errors are known by their class alone.
  const kind = error instanceof Error ? error.constructor.name : 'Unknown'
  const answer = ANSWERS.has(kind) ? /^[A-Z]{2,30}(?= |$)/.exec(String(message))?.[0] : undefined
  return new RedisError(answer ?? kind)
}

const ANSWERS: ReadonlySet<string> = new Set(['SimpleError', 'BlobError', 'ErrorReply'])
const WORD = /^\w{1,60}$/
