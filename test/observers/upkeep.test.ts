import { describe, expect, it, onTestFinished } from 'vitest'
import { type Backlog, createUpkeep, decideCrossing } from '../../src/observers/upkeep.ts'
import type { Database } from '../../src/postgres/index.ts'
import { createRegistry, createTestClock, silentLogger } from '../../src/runtime/index.ts'

describe('a crossing', () => {
  it.each([
    [false, 500n, 'none'],
    [false, 501n, 'up'],
    [true, 9_000n, 'none'],
    [true, 500n, 'down'],
  ] as const)('above before: %s, %i events of 500 allowed: %s', (isAbove, lag, expected) => {
    expect(decideCrossing(isAbove, lag, 500)).toBe(expected)
  })
})

async function open(first: Backlog | undefined) {
  const clock = createTestClock()
  const metrics = createRegistry({ clock })
  const alerts: string[] = []
  const warnings: object[] = []
  let queries = 0
  const database = {
    schema: 'aftercommit',
    query: async () => {
      queries++
      return { rows: [{ done: '[]' }], rowCount: 1 }
    },
  } as unknown as Database
  const state = { backlog: first }
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields), child: () => logger }
  const upkeep = createUpkeep({
    database,
    clock,
    logger,
    metrics,
    process: 'here',
    backlog: async () => state.backlog,
    threshold: () => 500,
    alert: async (text) => void alerts.push(text),
  })
  await upkeep.start()
  onTestFinished(() => upkeep.stop())
  await clock.advance(0)
  return {
    alerts,
    warnings,
    metrics,
    keeps: () => queries,
    pass: (ms: number) => clock.advance(ms),
    async sees(backlog: Backlog) {
      state.backlog = backlog
      await clock.advance(10_000)
    },
  }
}

describe('a backlog', () => {
  it('is told of once when it is crossed, and again only after it was below', async () => {
    const { alerts, warnings, sees } = await open({ lag: 10n, owner: 'here' })
    await sees({ lag: 600n, owner: 'here' })
    await sees({ lag: 9_000n, owner: 'here' })
    expect(alerts).toEqual([expect.stringContaining('600 events')])
    expect(warnings).toEqual([{ events: '600', threshold: 500 }])
    await sees({ lag: 500n, owner: 'here' })
    await sees({ lag: 501n, owner: 'here' })
    expect(alerts).toHaveLength(2)
  })

  it('is the business of the process that reads, or of any when nobody does', async () => {
    const { alerts, sees } = await open(undefined)
    await sees({ lag: 600n, owner: 'elsewhere' })
    expect(alerts).toEqual([])
    await sees({ lag: 600n, owner: null })
    expect(alerts).toHaveLength(1)
  })

  it('is a gauge', async () => {
    const { metrics } = await open({ lag: 7n, owner: 'elsewhere' })
    const text = await metrics.text()
    expect(text).toContain('aftercommit_backlog 7')
  })
})

it('days of run records are looked after at the start and then about every hour', async () => {
  const { keeps, pass } = await open(undefined)
  expect(keeps()).toBe(1)
  await pass(40 * 60_000)
  expect(keeps()).toBe(1)
  await pass(40 * 60_000)
  expect(keeps()).toBe(2)
})
