import { AftercommitError } from '../errors.ts'
import { type Clock, systemClock } from './clock.ts'
import { type MetricType, type Sample, toExposition } from './exposition.ts'
import { type Logger, silentLogger } from './logger.ts'
import type { Counter, Gauge, Histogram } from './metric-types.ts'
import { createCounter, createGauge, createHistogram, type Metric } from './metric-types.ts'
import { redacting } from './redacting-logger.ts'
import { withTimeout } from './signal.ts'
import { createThrottledLog } from './throttled-log.ts'

/**
 * All metrics of one instance, and their text for Prometheus. Asking again for a metric that exists gives the same one,
 * so parts that count the same thing need not know of each other; asking for it with another type is refused.
 */
export interface Registry {
  counter(definition: MetricDefinition): Counter
  gauge(definition: MetricDefinition): Gauge
  histogram(definition: MetricDefinition & { buckets?: readonly number[] }): Histogram
  /**
   * The exposition, ordered by name, to be served as METRICS_CONTENT_TYPE. A collector that fails or takes more than
   * `collectTimeoutMs` costs its own metric and is counted in `aftercommit_scrape_errors_total`; the rest stands.
   */
  text(): Promise<string>
}

export interface MetricDefinition {
  /** With the prefix `aftercommit_` and the unit; a counter ends in `_total`. */
  name: string
  help: string
  /** Few values each: an observer, an outcome; never an id of an event. */
  labels?: readonly string[]
}

export interface RegistryOptions {
  clock?: Clock
  logger?: Logger
  collectTimeoutMs?: number
}

export function createRegistry(options: RegistryOptions = {}): Registry {
  const { clock = systemClock, logger = silentLogger, collectTimeoutMs = 5000 } = options
  const metrics = new Map<string, { shape: string; help: string; metric: Metric }>()
  const logRepeatedly = createThrottledLog({ logger: redacting(logger), clock })

  const define = <M extends Metric>(
    definition: MetricDefinition,
    type: M['type'],
    create: (name: string, labels: readonly string[]) => M,
  ): M => {
    const { name, help, labels = [] } = definition
    const shape = `${type}(${labels.join(', ')})`
    const existing = metrics.get(name)
    if (!existing) {
      checkDefinition(name, type, labels)
      const metric = create(name, labels)
      metrics.set(name, { shape, help, metric })
      return metric
    }
    if (existing.shape !== shape) {
      refuse(`Metric ${name} is registered as ${existing.shape} and was asked for as ${shape}. Give one another name.`)
    }
    return existing.metric as M
  }

  const scrapeErrors = define(
    { name: 'aftercommit_scrape_errors_total', help: 'Metrics that could not be collected.', labels: ['metric'] },
    'counter',
    createCounter,
  )

  const collect = async (name: string, metric: Metric): Promise<Sample[]> => {
    try {
      return await withTimeout(metric.collectSamples(), collectTimeoutMs, clock, `Metric ${name} was not collected`)
    } catch (error) {
      scrapeErrors.labels({ metric: name }).inc()
      logRepeatedly('warn', name, { metric: name, err: error }, 'a metric could not be collected; the others were')
      return []
    }
  }

  return {
    counter: (definition) => define(definition, 'counter', createCounter),
    gauge: (definition) => define(definition, 'gauge', createGauge),
    histogram: ({ buckets, ...definition }) =>
      define(definition, 'histogram', (name, labels) => createHistogram(name, labels, buckets)),
    async text() {
      const names = [...metrics.keys()].sort()
      const samples = new Map<string, Sample[]>()
      await Promise.all(names.map(async (name) => samples.set(name, await collect(name, metrics.get(name)!.metric))))
      // Once more, last: errors of this very scrape belong in it.
      samples.set('aftercommit_scrape_errors_total', await scrapeErrors.collectSamples())
      return names
        .map((name) => {
          const { help, metric } = metrics.get(name)!
          return toExposition(name, metric.type, help, samples.get(name)!)
        })
        .join('')
    },
  }
}

function checkDefinition(name: string, type: MetricType, labels: readonly string[]): void {
  if (!/^aftercommit_[a-z][a-z0-9_]*$/.test(name)) {
    refuse(`Metric "${name}" was not registered: a name is aftercommit_ and then lower case letters, digits and _.`)
  }
  if ((type === 'counter') !== name.endsWith('_total')) {
    refuse(`Metric ${name} was not registered: names of counters, and only those, end in _total.`)
  }
  const bad = labels.find((label) => !/^[a-z][a-z0-9_]*$/.test(label) || (type === 'histogram' && label === 'le'))
  if (bad !== undefined || new Set(labels).size !== labels.length) {
    refuse(`Metric ${name} was not registered: its labels [${labels.join(', ')}] are not distinct lower case names.`)
  }
}

function refuse(message: string): never {
  throw new AftercommitError('BAD_OPTION', message)
}
