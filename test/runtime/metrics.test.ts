import { describe, expect, test } from 'vitest'
import { createRegistry, createTestClock, METRICS_CONTENT_TYPE, type Registry } from '../../src/runtime/index.ts'
import { parseExposition, recordingLogger } from './support.ts'

const scrape = async (registry: Registry) => parseExposition(await registry.text())

describe('the exposition', () => {
  test('is exactly the text format, ordered by name', async () => {
    const registry = createRegistry()
    registry.gauge({ name: 'aftercommit_backlog', help: 'Events waiting.' }).set(7)
    const counter = registry.counter({
      name: 'aftercommit_actions_total',
      help: 'Actions.',
      labels: ['action', 'outcome'],
    })
    counter.labels({ outcome: 'ok', action: 'webhook' }).inc(2)
    counter.labels({ outcome: 'ok', action: 'email' }).inc()
    expect(await registry.text()).toBe(
      [
        '# HELP aftercommit_actions_total Actions.',
        '# TYPE aftercommit_actions_total counter',
        'aftercommit_actions_total{action="email",outcome="ok"} 1',
        'aftercommit_actions_total{action="webhook",outcome="ok"} 2',
        '# HELP aftercommit_backlog Events waiting.',
        '# TYPE aftercommit_backlog gauge',
        'aftercommit_backlog 7',
        '# HELP aftercommit_scrape_errors_total Metrics that could not be collected.',
        '# TYPE aftercommit_scrape_errors_total counter',
        '',
      ].join('\n'),
    )
    expect(METRICS_CONTENT_TYPE).toContain('version=0.0.4')
  })

  test('any text survives in labels and help', async () => {
    const registry = createRegistry()
    const odd = 'a "quoted"\\n \\ back\nslash } , = é'
    registry
      .counter({ name: 'aftercommit_odd_total', help: odd, labels: ['type'] })
      .labels({ type: odd })
      .inc()
    const { value, help } = await scrape(registry)
    expect(help.get('aftercommit_odd_total')).toBe(odd)
    expect(value('aftercommit_odd_total', { type: odd })).toBe(1)
  })

  test('very large, very small and infinite values can be read back', async () => {
    const registry = createRegistry()
    const gauge = registry.gauge({ name: 'aftercommit_odd', help: 'Odd.', labels: ['n'] })
    const values = [1e21, 1.5e-9, -3, Infinity, -Infinity, Number.NaN]
    for (const [n, value] of values.entries()) gauge.labels({ n }).set(value)
    const { samples } = await scrape(registry)
    expect(samples.map((sample) => sample.value)).toEqual(values)
  })
})

describe('a counter', () => {
  test('without labels shows 0 before anything has happened', async () => {
    const registry = createRegistry()
    const counter = registry.counter({ name: 'aftercommit_x_total', help: 'X.' })
    expect((await scrape(registry)).value('aftercommit_x_total')).toBe(0)
    counter.inc()
    counter.inc(4)
    expect((await scrape(registry)).value('aftercommit_x_total')).toBe(5)
  })

  test('gives the same series for the same labels, to be kept by those in a hurry', () => {
    const counter = createRegistry().counter({ name: 'aftercommit_x_total', help: 'X.', labels: ['a', 'b'] })
    expect(counter.labels({ a: 'x', b: 'y' })).toBe(counter.labels({ b: 'y', a: 'x' }))
    expect(counter.labels({ a: 'x', b: 'y' })).not.toBe(counter.labels({ a: 'y', b: 'x' }))
  })

  test.each([-1, Number.NaN])('cannot grow by %d', (by) => {
    const counter = createRegistry().counter({ name: 'aftercommit_x_total', help: 'X.' })
    expect(() => counter.inc(by)).toThrow(/aftercommit_x_total/)
  })

  test.each([[{}], [{ a: 'x' }], [{ a: 'x', c: 'y' }], [{ a: 'x', b: 'y', c: 'z' }]])(
    'refuses the labels %j',
    (labels) => {
      const counter = createRegistry().counter({ name: 'aftercommit_x_total', help: 'X.', labels: ['a', 'b'] })
      expect(() => counter.labels(labels)).toThrow(/aftercommit_x_total has the labels \[a, b\]/)
      expect(() => counter.inc()).toThrow(/aftercommit_x_total has the labels/)
    },
  )

  test('labels without end are folded into one series, and none of the counts is lost', async () => {
    const registry = createRegistry()
    const counter = registry.counter({ name: 'aftercommit_x_total', help: 'X.', labels: ['type'] })
    for (let i = 0; i < 3000; i++) counter.labels({ type: `type-${i}` }).inc()
    const { samples, value } = await scrape(registry)
    expect(samples).toHaveLength(1001)
    expect(value('aftercommit_x_total', { type: 'other' })).toBe(2000)
  })
})

describe('a histogram', () => {
  test('counts each value in every bucket that holds it, bounds included', async () => {
    const registry = createRegistry()
    const histogram = registry.histogram({
      name: 'aftercommit_work_seconds',
      help: 'Work.',
      labels: ['action'],
      buckets: [0.1, 1],
    })
    const series = histogram.labels({ action: 'log' })
    for (const seconds of [0.05, 0.1, 0.5, 1, 30]) series.observe(seconds)
    const { value, types } = await scrape(registry)
    const bucket = (le: string) => value('aftercommit_work_seconds_bucket', { action: 'log', le })
    expect([bucket('0.1'), bucket('1'), bucket('+Inf')]).toEqual([2, 4, 5])
    expect(value('aftercommit_work_seconds_count', { action: 'log' })).toBe(5)
    expect(value('aftercommit_work_seconds_sum', { action: 'log' })).toBeCloseTo(31.65)
    expect(types.get('aftercommit_work_seconds')).toBe('histogram')
  })

  test('without labels it is complete before the first value', async () => {
    const registry = createRegistry()
    registry.histogram({ name: 'aftercommit_work_seconds', help: 'Work.' })
    const { samples } = await scrape(registry)
    expect(samples.at(-1)).toEqual({ name: 'aftercommit_work_seconds_count', labels: {}, value: 0 })
    expect(samples.filter((sample) => sample.labels.le === '+Inf')).toHaveLength(1)
  })

  test('refuses NaN and buckets that do not grow', () => {
    const registry = createRegistry()
    const histogram = registry.histogram({ name: 'aftercommit_work_seconds', help: 'Work.' })
    expect(() => histogram.observe(Number.NaN)).toThrow(/NaN/)
    for (const buckets of [[], [1, 1], [2, 1], [1, Number.NaN]]) {
      expect(() => registry.histogram({ name: 'aftercommit_other_seconds', help: 'Other.', buckets })).toThrow(
        /buckets/,
      )
    }
  })
})

describe('a gauge that is asked', () => {
  test('takes a number or a list of series, at once or later, and what is gone disappears', async () => {
    const registry = createRegistry()
    let lags = [
      { labels: { subscription: 'a' }, value: 1 },
      { labels: { subscription: 'b' }, value: 2 },
    ]
    registry.gauge({ name: 'aftercommit_lag', help: 'Lag.', labels: ['subscription'] }).collect(async () => lags)
    registry.gauge({ name: 'aftercommit_size', help: 'Size.' }).collect(() => 9)
    const first = await scrape(registry)
    expect(first.value('aftercommit_lag', { subscription: 'b' })).toBe(2)
    expect(first.value('aftercommit_size')).toBe(9)
    lags = lags.slice(0, 1)
    expect((await scrape(registry)).samples.filter((sample) => sample.name === 'aftercommit_lag')).toHaveLength(1)
  })

  test('is not asked any more after its collector was taken out', async () => {
    const registry = createRegistry()
    const remove = registry.gauge({ name: 'aftercommit_size', help: 'Size.' }).collect(() => 9)
    remove()
    expect((await scrape(registry)).value('aftercommit_size')).toBeUndefined()
  })

  test('a collector that fails costs its own metric, is counted in the same scrape, and is logged once', async () => {
    const logger = recordingLogger()
    const registry = createRegistry({ logger, clock: createTestClock() })
    registry.gauge({ name: 'aftercommit_broken', help: 'Broken.' }).collect(() => {
      throw new Error('no database')
    })
    registry.gauge({ name: 'aftercommit_late', help: 'Late.' }).collect(() => Promise.reject(new Error('no database')))
    registry.gauge({ name: 'aftercommit_size', help: 'Size.' }).collect(() => 9)
    await registry.text()
    const { value, samples } = await scrape(registry)
    expect(value('aftercommit_size')).toBe(9)
    expect(samples.some((sample) => ['aftercommit_broken', 'aftercommit_late'].includes(sample.name))).toBe(false)
    expect(value('aftercommit_scrape_errors_total', { metric: 'aftercommit_broken' })).toBe(2)
    expect(value('aftercommit_scrape_errors_total', { metric: 'aftercommit_late' })).toBe(2)
    expect(logger.lines.map((line) => line.fields.metric)).toEqual(['aftercommit_broken', 'aftercommit_late'])
  })

  test('a collector that hangs holds the scrape for its time limit, and is not called again meanwhile', async () => {
    const clock = createTestClock()
    const registry = createRegistry({ clock, collectTimeoutMs: 5000 })
    let calls = 0
    let answer = (_value: number) => {}
    registry.gauge({ name: 'aftercommit_slow', help: 'Slow.' }).collect(() => {
      calls++
      return new Promise((resolve) => {
        answer = resolve
      })
    })
    for (let round = 0; round < 2; round++) {
      const text = registry.text()
      await clock.advance(5000)
      expect(parseExposition(await text).value('aftercommit_slow')).toBeUndefined()
    }
    expect(calls).toBe(1)
    const text = registry.text()
    answer(3)
    const { value } = parseExposition(await text)
    expect(value('aftercommit_slow')).toBe(3)
    expect(value('aftercommit_scrape_errors_total', { metric: 'aftercommit_slow' })).toBe(2)
  })
})

describe('registration', () => {
  test('asking again for a metric gives the same one', async () => {
    const registry = createRegistry()
    const definition = { name: 'aftercommit_x_total', help: 'X.' }
    registry.counter(definition).inc()
    registry.counter(definition).inc()
    expect((await scrape(registry)).value('aftercommit_x_total')).toBe(2)
  })

  test('a name with another type or other labels is refused', () => {
    const registry = createRegistry()
    registry.gauge({ name: 'aftercommit_x', help: 'X.' })
    expect(() => registry.histogram({ name: 'aftercommit_x', help: 'X.' })).toThrow(/registered as gauge\(\)/)
    expect(() => registry.gauge({ name: 'aftercommit_x', help: 'X.', labels: ['a'] })).toThrow(
      /asked for as gauge\(a\)/,
    )
  })

  test.each(['x_total', 'aftercommit_X_total', 'aftercommit_', 'aftercommit_x', 'aftercommit_x y_total', '__proto__'])(
    'a counter named %j is refused',
    (name) => {
      expect(() => createRegistry().counter({ name, help: 'X.' })).toThrow(
        expect.objectContaining({ code: 'BAD_OPTION' }),
      )
    },
  )

  test('a gauge may not look like a counter, nor a histogram use the label le, nor a label come twice', () => {
    const registry = createRegistry()
    expect(() => registry.gauge({ name: 'aftercommit_x_total', help: 'X.' })).toThrow(/_total/)
    expect(() => registry.histogram({ name: 'aftercommit_x_seconds', help: 'X.', labels: ['le'] })).toThrow(/labels/)
    expect(() => registry.gauge({ name: 'aftercommit_x', help: 'X.', labels: ['a', 'a'] })).toThrow(/labels/)
    expect(() => registry.gauge({ name: 'aftercommit_x', help: 'X.', labels: ['a-b'] })).toThrow(/labels/)
  })
})
