import { AftercommitError } from '../errors.ts'
import { type MetricType, type Sample, toNumber } from './exposition.ts'
import { createSeries, type Labels } from './metric-series.ts'

/**
 * The three kinds of metric. Each is used directly when it has no labels; with labels, `labels({ … })` gives the one
 * series to use, and code on a hot path keeps that: counting is then an addition and nothing else.
 */
export interface Metric {
  readonly type: MetricType
  /** What the metric says now. Only a gauge may take time or fail. */
  collectSamples(): Promise<Sample[]>
}

export interface Counter extends Metric, CounterSeries {
  labels(labels: Labels): CounterSeries
}
export interface CounterSeries {
  inc(by?: number): void
}

export interface Gauge extends Metric, GaugeSeries {
  labels(labels: Labels): GaugeSeries
  /**
   * Asks at every scrape instead of being told: a number, or all series at once, so that what is gone disappears. At
   * most one call is under way. Returns the way out.
   */
  collect(collector: Collector): () => void
}
export interface GaugeSeries {
  set(value: number): void
}
export type Collector = () => Collected | Promise<Collected>
export type Collected = number | readonly { labels: Labels; value: number }[]

export interface Histogram extends Metric, HistogramSeries {
  labels(labels: Labels): HistogramSeries
}
export interface HistogramSeries {
  /** In seconds, unless the name of the metric says otherwise. */
  observe(value: number): void
}

export function createCounter(name: string, labelNames: readonly string[]): Counter {
  const series = createSeries(name, labelNames, () => {
    const cell = {
      value: 0,
      inc(by = 1) {
        if (!(by >= 0))
          throw new AftercommitError('BAD_OPTION', `Counter ${name} was asked to grow by ${by}; it cannot.`)
        cell.value += by
      },
    }
    return cell
  })
  // Without labels there is one series; it shows its 0 before anything has happened and is found without a lookup.
  const only = labelNames.length === 0 ? series.get({}) : undefined
  return {
    type: 'counter',
    labels: series.get,
    inc: (by) => (only ?? series.get({})).inc(by),
    async collectSamples() {
      return Array.from(series.entries(), ([labels, { value }]) => ({ suffix: '', labels, value }))
    },
  }
}

export function createGauge(name: string, labelNames: readonly string[]): Gauge {
  const createCells = () =>
    createSeries(name, labelNames, () => {
      const cell = {
        value: 0,
        set(value: number) {
          cell.value = value
        },
      }
      return cell
    })
  const told = createCells()
  const collectors = new Map<Collector, Promise<Collected> | undefined>()

  /** A collector that hangs is waited for again rather than called again: scrapes must not pile queries up. */
  const ask = (collector: Collector): Promise<Collected> => {
    const call = collectors.get(collector) ?? (async () => collector())().finally(() => settle(collector))
    collectors.set(collector, call)
    return call
  }
  const settle = (collector: Collector) => {
    if (collectors.has(collector)) collectors.set(collector, undefined)
  }

  return {
    type: 'gauge',
    labels: told.get,
    set: (value) => told.get({}).set(value),
    collect(collector) {
      collectors.set(collector, undefined)
      return () => {
        collectors.delete(collector)
      }
    },
    async collectSamples() {
      const asked = createCells()
      for (const answer of await Promise.all([...collectors.keys()].map(ask))) {
        const values = typeof answer === 'number' ? [{ labels: {}, value: answer }] : answer
        for (const { labels, value } of values) asked.get(labels).set(value)
      }
      for (const [labels, { value }] of told.entries()) asked.get(Object.fromEntries(labels)).set(value)
      return Array.from(asked.entries(), ([labels, { value }]) => ({ suffix: '', labels, value }))
    },
  }
}

/** From 1 ms to 30 s: from a handler that only counts to one at the end of its time. */
const DEFAULT_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createHistogram(
  name: string,
  labelNames: readonly string[],
  buckets: readonly number[] = DEFAULT_BUCKETS,
): Histogram {
  if (buckets.length === 0 || buckets.some((bound, index) => index > 0 && !(bound > buckets[index - 1]!))) {
    throw new AftercommitError('BAD_OPTION', `Histogram ${name} needs buckets that grow: a list of rising numbers.`)
  }
  const bounds = [...buckets.filter(Number.isFinite), Infinity]
  const series = createSeries(name, labelNames, () => {
    const cell = {
      counts: bounds.map(() => 0),
      sum: 0,
      observe(value: number) {
        if (Number.isNaN(value)) throw new AftercommitError('BAD_OPTION', `Histogram ${name} cannot observe NaN.`)
        cell.sum += value
        cell.counts[bounds.findIndex((bound) => value <= bound)]!++
      },
    }
    return cell
  })
  const only = labelNames.length === 0 ? series.get({}) : undefined
  return {
    type: 'histogram',
    labels: series.get,
    observe: (value) => (only ?? series.get({})).observe(value),
    async collectSamples() {
      return Array.from(series.entries(), ([labels, { counts, sum }]) => {
        let total = 0
        const cumulative = bounds.map((bound, index): Sample => {
          total += counts[index]!
          return { suffix: '_bucket', labels: [...labels, ['le', toNumber(bound)]], value: total }
        })
        return [...cumulative, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }]
      }).flat()
    },
  }
}
