/** Work that waits as rows, and the destinations it goes to. First attempts under way have no row and are not here. */
import { plain } from '../answers.ts'
import { actionOf, idsOf, limitOf, oneOf, positionOf, textOf, wordOf } from '../input.ts'
import type { Route } from '../routes.ts'

const KINDS = ['action', 'effect', 'timer'] as const
const STATES = ['waiting', 'running', 'scheduled', 'retrying', 'paused'] as const

export const deliveryRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'deliveries',
    role: 'viewer',
    changes: false,
    summary: 'Deliveries that are not done, oldest first. Filters: kind, state, name, destination, after.',
    async answer({ ac, query }) {
      const limit = limitOf(query)
      const filter = {
        kind: oneOf(query, 'kind', KINDS),
        state: oneOf(query, 'state', STATES),
        name: textOf(query, 'name'),
        destination: textOf(query, 'destination'),
      }
      const [items, counts] = await Promise.all([
        ac.deliveries.list({ ...filter, limit, after: positionOf(query, 'after') }),
        ac.deliveries.count(),
      ])
      const last = items.at(-1)
      return { items: plain(items), counts, next: items.length < limit || last === undefined ? null : String(last.id) }
    },
  },
  {
    method: 'GET',
    path: 'deliveries/:id',
    role: 'operator',
    changes: false,
    summary: 'One delivery with its payload.',
    answer: async ({ ac, params }) =>
      plain((await ac.deliveries.show(BigInt(/^\d{1,18}$/.test(params.id!) ? params.id! : '0'))) ?? null),
  },
  {
    method: 'POST',
    path: 'deliveries/retry',
    role: 'operator',
    changes: true,
    summary: 'Makes deliveries due now.',
    answer: async ({ ac, user, body }) => ({ count: await ac.deliveries.retry(idsOf(body), actionOf(user, body)) }),
  },
  {
    method: 'POST',
    path: 'deliveries/cancel',
    role: 'operator',
    changes: true,
    summary: 'Cancels deliveries: they are never done and leave no dead letter.',
    answer: async ({ ac, user, body }) => ({ count: await ac.deliveries.cancel(idsOf(body), actionOf(user, body)) }),
  },
  {
    method: 'GET',
    path: 'destinations',
    role: 'viewer',
    changes: false,
    summary: 'Limits, circuits and pauses that all processes share, and names of work.',
    async answer({ ac }) {
      const [destinations, names, orphans] = await Promise.all([
        ac.deliveries.destinations(),
        ac.deliveries.names(),
        ac.deliveries.orphans(),
      ])
      return { destinations: plain(destinations), names: plain(names), orphans: plain(orphans) }
    },
  },
  {
    method: 'POST',
    path: 'destinations/pause',
    role: 'operator',
    changes: true,
    summary: 'Lets nothing go to a destination.',
    answer: async ({ ac, user, body }) =>
      plain(await ac.deliveries.pause({ destination: wordOf(body, 'destination') }, actionOf(user, body))),
  },
  {
    method: 'POST',
    path: 'destinations/resume',
    role: 'operator',
    changes: true,
    summary: 'Ends a pause and the rest that a destination asked for, and probes it at once where its circuit is open.',
    answer: async ({ ac, user, body }) =>
      plain(await ac.deliveries.resume({ destination: wordOf(body, 'destination') }, actionOf(user, body))),
  },
]
