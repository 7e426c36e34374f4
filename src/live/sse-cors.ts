/** What browsers on pages of other origins are told. */
import type { SseSettings } from './sse-options.ts'

export function corsHeaders(request: Request, { cors }: SseSettings): Record<string, string> {
  const origin = request.headers.get('origin')
  if (cors === undefined || origin === null) return {}
  if (cors.origins.includes('*')) return { 'access-control-allow-origin': '*' }
  if (!cors.origins.includes(origin)) return { vary: 'origin' }
  const credentials = cors.credentials ? { 'access-control-allow-credentials': 'true' } : {}
  return { vary: 'origin', 'access-control-allow-origin': origin, ...credentials }
}

/** The answer to whoever asks before asking; undefined when it is no such question, or nothing is allowed. */
export function preflight(request: Request, cors: Record<string, string>): Response | undefined {
  if (request.method !== 'OPTIONS' || !('access-control-allow-origin' in cors)) return undefined
  const headers = {
    ...cors,
    'access-control-allow-methods': 'GET',
    'access-control-allow-headers': 'authorization, last-event-id',
    'access-control-max-age': '600',
  }
  return new Response(null, { status: 204, headers })
}
