import type { CounterSeries, GaugeSeries, Registry } from '../../runtime/index.ts'

export interface RelayMetrics {
  readonly published: CounterSeries
  readonly heard: CounterSeries
  readonly connected: GaugeSeries
}

export function createRelayMetrics(metrics: Registry): RelayMetrics {
  const messages = metrics.counter({
    name: 'aftercommit_redis_messages_total',
    help: 'Messages on the channel of Redis: published by this process, heard by it.',
    labels: ['outcome'],
  })
  return {
    published: messages.labels({ outcome: 'published' }),
    heard: messages.labels({ outcome: 'heard' }),
    connected: metrics
      .gauge({ name: 'aftercommit_redis_connected', help: '1 while Redis can be heard and published to, else 0.' })
      .labels({}),
  }
}
