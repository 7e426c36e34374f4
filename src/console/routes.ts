/** Every request that the console answers, with the role it needs. Tests and the OpenAPI description are made from this table. */
import type { Aftercommit } from '../index.ts'
import type { ConsoleRole, ConsoleUser } from './access.ts'
import { dataRoutes } from './api/data.ts'
import { deadLetterRoutes } from './api/dead-letters.ts'
import { deliveryRoutes } from './api/deliveries.ts'
import { eventRoutes } from './api/events.ts'
import { overviewRoutes } from './api/overview.ts'
import { subscriptionRoutes } from './api/subscriptions.ts'
import { workflowRoutes } from './api/workflows.ts'
import type { Watch } from './watch.ts'

export interface RouteCall {
  readonly ac: Aftercommit
  readonly user: ConsoleUser
  /** Parts of the path that the pattern names. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  readonly watch: Watch
  readonly signal: AbortSignal
  /** Whether the user of the request may still do what the request began; asked again while a stream is open. */
  isStillAllowed(): Promise<boolean>
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** `subscriptions/:id/pause`. */
  readonly path: string
  readonly role: ConsoleRole
  /** False: it only reads. */
  readonly changes: boolean
  readonly summary: string
  answer(call: RouteCall): Promise<unknown> | unknown
}

export const ROUTES: readonly Route[] = [
  ...overviewRoutes,
  ...eventRoutes,
  ...subscriptionRoutes,
  ...deliveryRoutes,
  ...deadLetterRoutes,
  ...workflowRoutes,
  ...dataRoutes,
]

const PATTERNS = ROUTES.map((route) => ({ route, parts: route.path.split('/') }))

export function findRoute(method: string, path: string): { route: Route; params: Record<string, string> } | undefined {
  const given = path.split('/')
  for (const { route, parts } of PATTERNS) {
    if (route.method !== method || parts.length !== given.length) continue
    const params: Record<string, string> = Object.create(null)
    const fits = parts.every((part, at) => {
      if (!part.startsWith(':')) return part === given[at]
      const value = decode(given[at]!)
      if (value === undefined || value === '') return false
      params[part.slice(1)] = value
      return true
    })
    if (fits) return { route, params }
  }
  return undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
