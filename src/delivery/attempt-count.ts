/** Counts attempts. Every series is found once: counting is on the way of every delivery. */
import type { CounterSeries, Registry } from '../runtime/index.ts'

export type CountAttempt = (kind: string, outcome: 'success' | 'retry' | 'dead') => void

export function createAttemptCount(metrics: Registry): CountAttempt {
  const counter = metrics.counter({
    name: 'aftercommit_delivery_attempts_total',
    help: 'Attempts at deliveries by this process.',
    labels: ['kind', 'outcome'],
  })
  const series = new Map<string, CounterSeries>()
  return (kind, outcome) => {
    const key = `${kind} ${outcome}`
    const known = series.get(key) ?? counter.labels({ kind, outcome })
    series.set(key, known)
    known.inc()
  }
}
