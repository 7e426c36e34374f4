import type { CounterSeries, GaugeSeries, Registry } from '../../runtime/index.ts'

export interface RelayMetrics {
  readonly published: CounterSeries
  readonly heard: CounterSeries
  readonly own: CounterSeries
  readonly repeated: CounterSeries
  /** Not one of ours: whatever it was, nothing was done. */
  readonly refused: CounterSeries
  readonly gaps: CounterSeries
  readonly connected: GaugeSeries
}

export function createRelayMetrics(metrics: Registry): RelayMetrics {
  const messages = metrics.counter({
    name: 'aftercommit_redis_messages_total',
    help: 'Messages on the channel of Redis, by what this process did with them.',
    labels: ['outcome'],
  })
  return {
    published: messages.labels({ outcome: 'published' }),
    heard: messages.labels({ outcome: 'heard' }),
    own: messages.labels({ outcome: 'own' }),
    repeated: messages.labels({ outcome: 'repeated' }),
    refused: messages.labels({ outcome: 'refused' }),
    gaps: metrics
      .counter({ name: 'aftercommit_redis_gaps_total', help: 'Times that messages of others had not been heard.' })
      .labels({}),
    connected: metrics
      .gauge({ name: 'aftercommit_redis_connected', help: '1 while Redis can be heard and published to, else 0.' })
      .labels({}),
  }
}
