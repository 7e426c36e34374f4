/**
 * A request passes, in this order: the host, the page's own files (public, without data), the origin of anything that
 * changes something, who asks, what they may do, the route. The first refusal ends it.
 */
import { AftercommitError } from '../errors.ts'
import type { Aftercommit } from '../index.ts'
import { type ConsoleAccess, mayDo, type Sessions } from './access.ts'
import { json, Refusal, toErrorAnswer } from './answers.ts'
import { createPage } from './page.ts'
import { redactFor } from './redact.ts'
import { findRoute } from './routes.ts'
import { createWatch } from './watch.ts'

export interface ConsoleOptions {
  /** Answers who sends a request. Without it no console is made. */
  readonly authorize: ConsoleAccess
  /** Where the console is mounted. Default: '/'. */
  readonly path?: string | undefined
  /** Shown as a badge on every page: `production`, `staging`. */
  readonly environment?: string | undefined
  /** Nobody can change anything through this console. Default: false. */
  readonly readOnly?: boolean | undefined
  /** Names by which the console may be called, such as `console.example.com`. Default: any. */
  readonly hosts?: readonly string[] | undefined
}

export interface Console {
  /** Answers a request below the path of the console. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Ends every open stream. */
  close(): void
}

const MOST_BODY = 1_000_000
const MOST_FAILURES = 10

export function createConsole(ac: Aftercommit, options: ConsoleOptions, sessions?: Sessions): Console {
  const { authorize, environment = null, readOnly = false, hosts } = options
  if (typeof authorize !== 'function') {
    throw new AftercommitError(
      'BAD_OPTION',
      'A console needs `authorize(request)`, which answers `{ who, role }` or null. Without it anybody could redrive and discard, so no console was made.',
    )
  }
  const path = toPath(options.path ?? '/')
  const page = createPage(path)
  const watch = createWatch(ac)
  const failures: number[] = []

  async function answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    if (hosts !== undefined && !hosts.includes(url.hostname)) {
      throw new Refusal(421, 'UNKNOWN_HOST', 'This console is not called by that name.')
    }
    if (!`${url.pathname}/`.startsWith(path)) throw new Refusal(404, 'NOT_FOUND', 'There is nothing here.')
    const rest = url.pathname.slice(path.length)
    if (!rest.startsWith('api/')) return page(request, rest)
    if (request.method !== 'GET') checkOrigin(request, url)
    const name = rest.slice(4)
    if (name === 'sign-in' && request.method === 'POST') return signIn(request)
    if (name === 'sign-out' && request.method === 'POST') {
      return json({}, { headers: sessions === undefined ? {} : { 'set-cookie': sessions.signOut } })
    }
    const user = await authorize(request)
    if (user === null) throw new Refusal(401, 'SIGN_IN', 'Sign in to see this.')
    if (name === 'session') return json({ who: user.who, role: user.role, environment, read_only: readOnly, path })
    const found = findRoute(request.method, name)
    if (found === undefined) throw new Refusal(404, 'NOT_FOUND', `There is no ${request.method} ${name}.`)
    const { route, params } = found
    if (!mayDo(user, route.role)) {
      throw new Refusal(403, 'ROLE_TOO_LOW', `This needs the role ${route.role}, and ${user.who} is ${user.role}.`)
    }
    if (route.changes && readOnly) throw new Refusal(403, 'READ_ONLY', 'This console changes nothing.')
    const body = route.changes ? await readBody(request) : {}
    const isStillAllowed = async () => (await authorize(request))?.role === user.role
    const given = { ac, user, params, query: url.searchParams, body, watch, signal: request.signal, isStillAllowed }
    const value = await route.answer(given)
    return value instanceof Response ? value : json(redactFor(user.role, value))
  }

  async function signIn(request: Request): Promise<Response> {
    if (sessions === undefined)
      throw new Refusal(404, 'NOT_FOUND', 'This console has no tokens: the application signs in.')
    const now = Date.now()
    while (failures.length > 0 && failures[0]! < now - 60_000) failures.shift()
    const { token } = await readBody(request)
    const cookie = typeof token === 'string' ? sessions.signIn(token, new Date(now)) : undefined
    if (cookie === undefined) {
      // The right token is let in all the same: nobody locks others out by guessing.
      if (failures.length >= MOST_FAILURES)
        throw new Refusal(429, 'TOO_MANY_ATTEMPTS', 'Too many wrong tokens. Wait a minute.')
      failures.push(now)
      throw new Refusal(401, 'WRONG_TOKEN', 'That token is not known here.')
    }
    return json({}, { headers: { 'set-cookie': cookie } })
  }

  return {
    async fetch(request) {
      try {
        return await answer(request)
      } catch (error) {
        return toErrorAnswer(error)
      }
    },
    close: () => watch.close(),
  }
}

/** A form or a script of another site sends its own origin, and neither sends JSON without asking first. */
function checkOrigin(request: Request, url: URL): void {
  const site = request.headers.get('sec-fetch-site')
  const origin = request.headers.get('origin')
  const isForeign =
    (site !== null && site !== 'same-origin' && site !== 'none') || (origin !== null && hostOf(origin) !== url.host)
  if (isForeign) throw new Refusal(403, 'FOREIGN_ORIGIN', 'Changes are taken from the pages of this console alone.')
  if (!(request.headers.get('content-type') ?? '').startsWith('application/json')) {
    throw new Refusal(415, 'NOT_JSON', 'Changes are taken as JSON (content-type: application/json).')
  }
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

async function readBody(request: Request): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > MOST_BODY) throw new Refusal(413, 'TOO_LARGE', 'The body is larger than 1 MB.')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  try {
    const value: unknown = text === '' ? {} : JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {}
  throw new Refusal(400, 'BAD_BODY', 'The body must be a JSON object.')
}

function toPath(path: string): string {
  if (!/^\/[\w./~-]*$/.test(path) || path.includes('//') || path.includes('..')) {
    throw new AftercommitError(
      'BAD_OPTION',
      `The path of a console begins with a slash, like "/console"; ${JSON.stringify(path)} does not do.`,
    )
  }
  return path.endsWith('/') ? path : `${path}/`
}
