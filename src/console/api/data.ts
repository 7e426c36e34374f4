/** Rules, the database and the audit. */
import { plain } from '../answers.ts'
import { limitOf, positionOf, textOf } from '../input.ts'
import type { Route } from '../routes.ts'

export const dataRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'observers',
    role: 'viewer',
    changes: false,
    summary: 'Every rule in force, with what it did in the last 24 hours.',
    answer: async ({ ac }) => ({ items: plain(await ac.observers.status()) }),
  },
  {
    method: 'GET',
    path: 'database',
    role: 'viewer',
    changes: false,
    summary: 'Server, schema, log, partitions and processes.',
    answer: async ({ ac }) => plain(await ac.status()),
  },
  {
    method: 'GET',
    path: 'findings',
    role: 'operator',
    changes: false,
    summary: 'What could go wrong with this database, and how to mend it.',
    answer: async ({ ac }) => ({ items: plain(await ac.doctor()) }),
  },
  {
    method: 'GET',
    path: 'audit',
    role: 'viewer',
    changes: false,
    summary: 'What operators did, newest first. Filters: who, what, target, before.',
    async answer({ ac, query, user }) {
      const limit = limitOf(query)
      const items = await ac.audit.list({
        limit,
        who: textOf(query, 'who'),
        what: textOf(query, 'what'),
        target: textOf(query, 'target'),
        before: positionOf(query, 'before'),
      })
      const last = items.at(-1)
      // Records of the audit hook name users of the application: they are for admins.
      const shown = user.role === 'admin' ? items : items.filter(({ after }) => !isOfHook(after))
      return { items: plain(shown), next: items.length < limit || last === undefined ? null : String(last.id) }
    },
  },
]

function isOfHook(after: unknown): boolean {
  return typeof after === 'object' && after !== null && 'actor' in after
}
