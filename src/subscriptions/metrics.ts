/** What is counted of subscriptions. Series are kept per subscription: counting is then an addition. */
import type { CounterSeries, Registry } from '../runtime/index.ts'

/** The counters of one subscription. */
export interface SubscriptionMetrics {
  readonly handled: CounterSeries
  readonly failed: CounterSeries
  readonly retried: CounterSeries
  readonly buried: CounterSeries
  /** Call what it returns when the head at the start was reached. */
  catchUp(): (handled: number) => void
}

export function createSubscriptionMetrics(registry: Registry): (id: string) => SubscriptionMetrics {
  const calls = registry.counter({
    name: 'aftercommit_handled_total',
    help: 'Calls of handlers by subscription and outcome.',
    labels: ['subscription', 'outcome'],
  })
  const retried = registry.counter({
    name: 'aftercommit_retry_attempts_total',
    help: 'Tries that failed and are made again.',
    labels: ['subscription'],
  })
  const buried = registry.counter({
    name: 'aftercommit_dead_letters_total',
    help: 'Events that ran out of tries.',
    labels: ['subscription'],
  })
  const caught = registry.counter({
    name: 'aftercommit_catchup_events_total',
    help: 'Events handled while catching up.',
    labels: ['subscription'],
  })
  const duration = registry.histogram({
    name: 'aftercommit_catchup_duration_seconds',
    help: 'How long catching up took.',
    labels: ['subscription'],
    buckets: [0.1, 1, 10, 60, 600, 3_600],
  })
  return (subscription) => ({
    handled: calls.labels({ subscription, outcome: 'ok' }),
    failed: calls.labels({ subscription, outcome: 'failed' }),
    retried: retried.labels({ subscription }),
    buried: buried.labels({ subscription }),
    catchUp() {
      const began = performance.now()
      return (count) => {
        caught.labels({ subscription }).inc(count)
        duration.labels({ subscription }).observe((performance.now() - began) / 1_000)
      }
    },
  })
}
