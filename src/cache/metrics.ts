import type { CounterSeries, Registry } from '../runtime/index.ts'

export interface CacheMetrics {
  readonly hits: CounterSeries
  readonly misses: CounterSeries
  readonly evictions: CounterSeries
  readonly invalidated: CounterSeries
}

export function createCacheMetrics(metrics: Registry, size: () => number): CacheMetrics {
  const lookups = metrics.counter({
    name: 'aftercommit_cache_lookups_total',
    help: 'Times that ac.cache was asked for a key.',
    labels: ['outcome'],
  })
  const removals = metrics.counter({
    name: 'aftercommit_cache_removals_total',
    help: 'Entries of ac.cache that went before their time.',
    labels: ['reason'],
  })
  metrics
    .gauge({ name: 'aftercommit_cache_entries', help: 'Entries of ac.cache in this process.' })
    .collect(() => size())
  return {
    hits: lookups.labels({ outcome: 'hit' }),
    misses: lookups.labels({ outcome: 'miss' }),
    evictions: removals.labels({ reason: 'room' }),
    invalidated: removals.labels({ reason: 'invalidated' }),
  }
}
