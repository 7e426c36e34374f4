import type { CounterSeries, HistogramSeries, Registry } from '../runtime/index.ts'

/** What is counted of one hook of scope `instance`; those of scope `cluster` are subscriptions and counted as such. */
export interface HookMetrics {
  readonly ok: CounterSeries
  readonly failed: CounterSeries
  readonly seconds: HistogramSeries
  readonly resyncs: CounterSeries
}

export function createHookMetrics(metrics: Registry, hook: string): HookMetrics {
  const calls = metrics.counter({
    name: 'aftercommit_hook_calls_total',
    help: 'Calls of hooks of scope instance, each try counted.',
    labels: ['hook', 'outcome'],
  })
  return {
    ok: calls.labels({ hook, outcome: 'ok' }),
    failed: calls.labels({ hook, outcome: 'failed' }),
    seconds: metrics
      .histogram({
        name: 'aftercommit_hook_duration_seconds',
        help: 'How long asynchronous calls of hooks took.',
        labels: ['hook'],
      })
      .labels({ hook }),
    resyncs: metrics
      .counter({
        name: 'aftercommit_hook_resyncs_total',
        help: 'Times a hook had lost its place in the log and loaded anew.',
        labels: ['hook'],
      })
      .labels({ hook }),
  }
}
