/** Subscriptions, projections, relays and hooks by checkpoint. */
import type { StartPoint } from '../../index.ts'
import { plain, Refusal } from '../answers.ts'
import { actionOf, wordOf } from '../input.ts'
import type { Route } from '../routes.ts'

export const subscriptionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'subscriptions',
    role: 'viewer',
    changes: false,
    summary: 'Every subscription with its checkpoint, lag, owner, dead letters and parked keys.',
    async answer({ ac }) {
      const [items, status, processes] = await Promise.all([ac.subscriptions.list(), ac.log.status(), ac.status()])
      const hosts = new Map(processes.processes.map((one) => [one.process, `${one.host} ${one.pid}`]))
      return {
        head: String(status.head),
        frontier: String(status.frontier),
        items: items.map((one) => ({
          ...(plain(one) as object),
          host: one.owner === null ? null : (hosts.get(one.owner) ?? one.owner),
        })),
      }
    },
  },
  {
    method: 'POST',
    path: 'subscriptions/:id/pause',
    role: 'operator',
    changes: true,
    summary: 'Lets no handler begin, in any process.',
    async answer({ ac, params, user, body }) {
      await ac.subscriptions.get(params.id!).pause(actionOf(user, body))
      return {}
    },
  },
  {
    method: 'POST',
    path: 'subscriptions/:id/resume',
    role: 'operator',
    changes: true,
    summary: 'Goes on from the checkpoint.',
    async answer({ ac, params, user, body }) {
      await ac.subscriptions.get(params.id!).resume(actionOf(user, body))
      return {}
    },
  },
  {
    method: 'POST',
    path: 'subscriptions/:id/seek',
    role: 'operator',
    changes: true,
    summary: 'Moves the checkpoint. With `preview: true` it only counts what would be handled again or skipped.',
    async answer({ ac, params, user, body }) {
      const handle = ac.subscriptions.get(params.id!)
      const to = startPointOf(wordOf(body, 'to'))
      return plain(body.preview === true ? await handle.previewSeek(to) : await handle.seek(to, actionOf(user, body)))
    },
  },
]

function startPointOf(text: string): StartPoint {
  if (text === 'start' || text === 'head') return text
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  const time = new Date(text)
  if (Number.isFinite(time.getTime())) return time
  throw new Refusal(400, 'BAD_VALUE', '`to` is start, head, a position or a time.')
}
