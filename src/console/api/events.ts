/** Events: the list with the fate of each, and the receipt of one. */
import { toEventJson } from '../../events/index.ts'
import { type AftercommitEvent, toReceiptJson } from '../../index.ts'
import { plain, Refusal } from '../answers.ts'
import { limitOf, positionOf, textOf, timeOf } from '../input.ts'
import type { Route, RouteCall } from '../routes.ts'

export const eventRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'events',
    role: 'viewer',
    changes: false,
    summary:
      'The newest events, with one mark per reaction. Filters: on, aggregate, tenant, correlation, since, before.',
    async answer({ ac, query, user }) {
      const limit = limitOf(query)
      const on = textOf(query, 'on')?.split(/[\s,]+/)
      const events = await ac.log.list({
        limit,
        on,
        aggregate: aggregateOf(query),
        tenant: textOf(query, 'tenant'),
        correlationId: textOf(query, 'correlation'),
        since: timeOf(query, 'since'),
        before: positionOf(query, 'before'),
      })
      // Our own events of caches and the like are noise, unless a filter asks for them.
      const shown = on === undefined ? events.filter(({ type }) => !type.startsWith('aftercommit.')) : events
      const strips = await ac.receipt.strips(shown)
      const last = events.at(-1)
      return {
        items: shown.map((event) => ({
          ...toLine(event, user.role !== 'viewer'),
          strip: strips.get(event.id) ?? [],
        })),
        next: events.length < limit || last === undefined ? null : String(last.position),
      }
    },
  },
  {
    method: 'GET',
    path: 'events/:id',
    role: 'viewer',
    changes: false,
    summary: 'The receipt of one event, by its id or position. A viewer sees no payload.',
    async answer({ ac, params, user }) {
      const id = await findId(ac, params.id!)
      return toReceiptJson(await ac.receipt(id), { reveal: user.role === 'admin' })
    },
  },
  {
    method: 'GET',
    path: 'types',
    role: 'viewer',
    changes: false,
    summary: 'Types of the newest 1,000 events, the most frequent first.',
    async answer({ ac }) {
      const counts = new Map<string, number>()
      for (const { type } of await ac.log.list({ limit: 1_000 })) counts.set(type, (counts.get(type) ?? 0) + 1)
      const items = [...counts].map(([type, count]) => ({ type, count })).sort((a, b) => b.count - a.count)
      return { items }
    },
  },
]

/** One line of a list. */
export function toLine(event: AftercommitEvent, withPayload: boolean): Record<string, unknown> {
  const { id, position, type, aggregateType, aggregateId, version, tenant, recordedAt } = event
  const line = { id, position, type, aggregateType, aggregateId, version, tenant, recordedAt }
  return { ...(plain(line) as object), ...(withPayload && { summary: summaryOf(event) }) }
}

/** The first fields of a payload in a few words: `total 90, currency EUR`. */
function summaryOf(event: AftercommitEvent): string {
  const { payload } = toEventJson(event)
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return clip(String(payload ?? ''), 80)
  const words = Object.entries(payload)
    .filter(([, value]) => typeof value !== 'object' || value === null)
    .slice(0, 4)
    .map(([name, value]) => `${name} ${clip(String(value), 30)}`)
  return clip(words.join(', '), 120)
}

function clip(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

async function findId(ac: RouteCall['ac'], given: string): Promise<string> {
  if ((await ac.log.get(given)) !== undefined) return given
  const position = /^\d{1,18}$/.test(given) ? BigInt(given) : 0n
  const [event] = position > 0n ? await ac.log.read({ from: position - 1n, limit: 1 }) : []
  if (event?.position === position && position > 0n) return event.id
  throw new Refusal(
    404,
    'EVENT_NOT_FOUND',
    'There is no such event: it was never committed, or retention has removed it.',
  )
}

function aggregateOf(query: URLSearchParams): { type: string; id: string } | undefined {
  const text = textOf(query, 'aggregate')
  if (text === undefined) return undefined
  const slash = text.indexOf('/')
  if (slash > 0 && slash < text.length - 1) return { type: text.slice(0, slash), id: text.slice(slash + 1) }
  throw new Refusal(400, 'BAD_AGGREGATE', 'aggregate is a type and an id with a slash between them, like order/42.')
}
