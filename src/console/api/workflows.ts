/** Workflow instances, their histories, timers and what they wait for. */
import { toEventJson } from '../../events/index.ts'
import { plain } from '../answers.ts'
import { actionOf, limitOf, textOf } from '../input.ts'
import type { Route } from '../routes.ts'

export const workflowRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'workflows',
    role: 'viewer',
    changes: false,
    summary: 'Instances by their last event, newest first. Filters: type, after.',
    async answer({ ac, query }) {
      const type = textOf(query, 'type')
      const after = textOf(query, 'after')
      const page = await ac.workflows.list(type === undefined ? undefined : { type }, {
        limit: limitOf(query),
        ...(after !== undefined && { after }),
      } as never)
      return plain(page)
    },
  },
  {
    method: 'GET',
    path: 'workflows/:type/:id',
    role: 'viewer',
    changes: false,
    summary: 'One instance: its newest 500 events, open effects and timers, dead letters.',
    async answer({ ac, params, user }) {
      const { type, id } = params as { type: string; id: string }
      const [events, timers, letters, rows] = await Promise.all([
        ac.log.list({ aggregate: { type, id }, limit: 500 }),
        ac.workflows.timers({ type, id, limit: 200 }),
        ac.deadLetters.list({ owner: type, key: id, limit: 200 }),
        ac.deliveries.list({ kind: 'effect', limit: 1_000 }),
      ])
      return {
        type,
        id,
        events: events.map((event) => {
          return toEventJson(event, { reveal: user.role === 'admin' })
        }),
        timers: plain(timers),
        effects: plain(rows.filter(({ key, name }) => key === id && (name === type || name.startsWith(`${type}/`)))),
        letters: letters.map(({ event, ...letter }) => ({
          ...(plain(letter) as object),
          event_type: event.type,
          event_id: event.id,
        })),
      }
    },
  },
  {
    method: 'POST',
    path: 'workflows/:type/:id/pause',
    role: 'operator',
    changes: true,
    summary: 'Takes no input, fires no timer and begins no effect of an instance.',
    answer: async ({ ac, params, user, body }) => ({
      changed: await ac.workflows.pause(refOf(params), actionOf(user, body)),
    }),
  },
  {
    method: 'POST',
    path: 'workflows/:type/:id/resume',
    role: 'operator',
    changes: true,
    summary: 'Goes on with an instance.',
    answer: async ({ ac, params, user, body }) => ({
      changed: await ac.workflows.resume(refOf(params), actionOf(user, body)),
    }),
  },
  {
    method: 'GET',
    path: 'timers',
    role: 'viewer',
    changes: false,
    summary: 'Timers that have not fired, soonest first.',
    answer: async ({ ac, query }) => ({ items: plain(await ac.workflows.timers({ limit: limitOf(query) })) }),
  },
  {
    method: 'GET',
    path: 'schedules',
    role: 'viewer',
    changes: false,
    summary: 'Recurring work with its next time.',
    answer: async ({ ac }) => ({ items: plain(await ac.schedules.list()) }),
  },
]

function refOf(params: Readonly<Record<string, string>>): { type: string; id: string } {
  return { type: params.type!, id: params.id! }
}
