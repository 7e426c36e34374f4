/** The first page: how it is in one sentence, what needs attention, and the stream that keeps every page current. */
import { plain } from '../answers.ts'
import { findNeeds, verdictOf } from '../needs.ts'
import type { Route } from '../routes.ts'

export const overviewRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'overview',
    role: 'viewer',
    changes: false,
    summary:
      'How it is in one sentence, what needs attention with the act beside it, rates, subscriptions and destinations.',
    async answer({ ac, watch, user }) {
      const [subscriptions, destinations, causes, orphans, status] = await Promise.all([
        ac.subscriptions.list(),
        ac.deliveries.destinations(),
        ac.deadLetters.causes(),
        ac.deliveries.orphans(),
        ac.status(),
      ])
      const { log, processes } = status
      const needs = findNeeds({
        now: new Date(),
        subscriptions,
        destinations,
        causes,
        orphans,
        log,
        processes,
        isQuoting: user.role !== 'viewer',
      })
      return {
        sentence: verdictOf(needs),
        needs: plain(needs),
        rates: watch.rates(),
        subscriptions: plain(subscriptions),
        destinations: plain(destinations),
        log: plain(log),
        processes: plain(processes),
        server: plain(status.server),
      }
    },
  },
  {
    method: 'GET',
    path: 'stream',
    role: 'viewer',
    changes: false,
    summary:
      'Server-sent events: the state of the log each second and, with `tail=1`, new events, at most 50 a second.',
    answer: ({ watch, query, user, signal, isStillAllowed }) =>
      watch.open({ tails: query.get('tail') === '1', withPayload: user.role !== 'viewer', signal, isStillAllowed }),
  },
]
