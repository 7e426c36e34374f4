/** Every answer that is not a success: problem JSON as RFC 9457 has it. */
import { stringifyJson } from '../events/index.ts'

/** One thing wrong with one event of the request. */
export interface Mistake {
  /** Place in the batch, from 0; 0 for an event by itself. */
  readonly index: number
  /** A CloudEvents attribute, or a path into `data`. */
  readonly field: string
  readonly detail: string
}

/** Why a request is not taken. Thrown wherever it is found, answered in one place. */
export class Refusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly mistakes: readonly Mistake[]

  constructor(status: number, detail: string, { headers = {}, mistakes = [], cause }: RefusalOptions = {}) {
    super(detail, { cause })
    this.status = status
    this.headers = headers
    this.mistakes = mistakes
  }
}

interface RefusalOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly mistakes?: readonly Mistake[]
  /** For the one who runs this server; the sender is not told. */
  readonly cause?: unknown
}

/** With a body that was not read to its end, the connection cannot be used again. */
export function toProblem({ status, message, headers, mistakes }: Refusal, { unread }: { unread: boolean }): Response {
  const problem = {
    type: 'about:blank',
    title: TITLES[status],
    status,
    detail: message,
    ...(mistakes.length === 0 ? {} : { errors: mistakes.slice(0, MOST_MISTAKES) }),
    ...(mistakes.length <= MOST_MISTAKES ? {} : { omitted: mistakes.length - MOST_MISTAKES }),
  }
  return new Response(stringifyJson(problem), {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...headers,
      ...(unread ? { connection: 'close' } : {}),
    },
  })
}

/** An answer stays smaller than the request it is about. */
const MOST_MISTAKES = 1_000

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}
