/** What observers count. Every series is found once: counting is on the way of every event. */
import type { CounterSeries, HistogramSeries, Registry } from '../runtime/index.ts'
import type { EventOutcome } from './executor.ts'

export interface Measures {
  event(type: string, outcome: EventOutcome): void
  action(type: string, outcome: 'success' | 'failure', durationMs: number): void
}

/** Types are few; those of a program that makes them up are counted together. */
const MOST_SERIES = 1_000

export function createMeasures(metrics: Registry): Measures {
  const events = metrics.counter({
    name: 'aftercommit_observer_events_total',
    help: 'Events that observers were asked about, once per observer that they concern.',
    labels: ['type', 'outcome'],
  })
  const durations = metrics.histogram({
    name: 'aftercommit_action_duration_seconds',
    help: 'How long attempts of actions took.',
    labels: ['action', 'outcome'],
  })
  const counted = new Map<string, CounterSeries>()
  const timed = new Map<string, HistogramSeries>()
  return {
    event(type, outcome) {
      const key = `${type} ${outcome}`
      const known = counted.get(key)
      if (known) return known.inc()
      if (counted.size >= MOST_SERIES) return events.labels({ type: 'other', outcome }).inc()
      const series = events.labels({ type, outcome })
      counted.set(key, series)
      series.inc()
    },
    action(action, outcome, durationMs) {
      const key = `${action} ${outcome}`
      const series = timed.get(key) ?? durations.labels({ action, outcome })
      timed.set(key, series)
      series.observe(durationMs / 1_000)
    },
  }
}
