/** Who asks, and what they may do. Roles are steps: an operator may do what a viewer may, an admin what an operator may. */
import { createHmac, timingSafeEqual } from 'node:crypto'

export type ConsoleRole = 'viewer' | 'operator' | 'admin'

export interface ConsoleUser {
  /** Written into the audit with every act. */
  readonly who: string
  readonly role: ConsoleRole
}

/** Answers who sends a request, or null for nobody. */
export type ConsoleAccess = (request: Request) => ConsoleUser | null | Promise<ConsoleUser | null>

const STEPS: Readonly<Record<ConsoleRole, number>> = { viewer: 1, operator: 2, admin: 3 }

export function mayDo(user: ConsoleUser, needed: ConsoleRole): boolean {
  return STEPS[user.role] >= STEPS[needed]
}

export interface NamedToken {
  readonly token: string
  readonly user: ConsoleUser
}

/** Signed in by a token; the cookie holds the name of the token, an end and a signature, and no process keeps a session. */
export interface Sessions {
  readonly access: ConsoleAccess
  /** The cookie for the right token; undefined for a wrong one. */
  signIn(token: string, now: Date): string | undefined
  readonly signOut: string
}

const COOKIE = 'aftercommit_console'
const LASTS_MS = 12 * 3_600_000

export function createSessions(
  tokens: readonly NamedToken[],
  path: string,
  clock: () => Date = () => new Date(),
): Sessions {
  const attributes = `Path=${path}; HttpOnly; SameSite=Strict`
  return {
    access(request) {
      const value = cookieOf(request)
      if (value === undefined) return null
      const [index = '', end = '', signature = ''] = value.split('.')
      const named = tokens[Number(index)]
      if (named === undefined || !isSame(signature, sign(named.token, `${index}.${end}`))) return null
      return Number(end) > clock().getTime() ? named.user : null
    },
    signIn(token, now) {
      const index = tokens.findIndex((named) => isSame(digest(named.token), digest(token)))
      if (index < 0) return undefined
      const value = `${index}.${now.getTime() + LASTS_MS}`
      return `${COOKIE}=${value}.${sign(tokens[index]!.token, value)}; ${attributes}; Max-Age=${LASTS_MS / 1_000}`
    },
    signOut: `${COOKIE}=; ${attributes}; Max-Age=0`,
  }
}

function cookieOf(request: Request): string | undefined {
  const found = (request.headers.get('cookie') ?? '').split(/;\s*/).find((one) => one.startsWith(`${COOKIE}=`))
  return found?.slice(COOKIE.length + 1)
}

/** The key is derived from the token, so every process that knows the token verifies the cookie. */
function sign(token: string, text: string): string {
  return createHmac('sha256', digest(token)).update(text).digest('base64url')
}

function digest(token: string): string {
  return createHmac('sha256', 'aftercommit console').update(token).digest('base64url')
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
