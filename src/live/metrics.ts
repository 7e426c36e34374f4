import type { CounterSeries, Registry } from '../runtime/index.ts'

export interface FeedMetrics {
  of(transport: string): { readonly lagged: CounterSeries; readonly sent: CounterSeries }
}

/** `countClients` gives how many there are now, by transport. */
export function createFeedMetrics(metrics: Registry, countClients: () => ReadonlyMap<string, number>): FeedMetrics {
  const labels = ['transport']
  const lagged = metrics.counter({
    name: 'aftercommit_live_lagged_total',
    help: 'Clients of live feeds that were too slow and were told where to resume.',
    labels,
  })
  const sent = metrics.counter({
    name: 'aftercommit_live_sent_total',
    help: 'Events handed to clients of live feeds.',
    labels,
  })
  metrics
    .gauge({ name: 'aftercommit_live_clients', help: 'Clients that follow a live feed of this process.', labels })
    .collect(() => Array.from(countClients(), ([transport, value]) => ({ labels: { transport }, value })))
  return { of: (transport) => ({ lagged: lagged.labels({ transport }), sent: sent.labels({ transport }) }) }
}
