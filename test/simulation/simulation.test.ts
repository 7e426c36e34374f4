/** Random orders of faults, played against the simulated database; `npm run simulate` plays more of them. */
import { describe, expect, test, vi } from 'vitest'
import { SAFETIES, type Safety } from './database/safeties.ts'
import { statementOf } from './database/statements.ts'
import { main, type Verdict } from './main.ts'
import { drawSubscription, type Plan, type SubscriptionPlan } from './plan.ts'
import { Random } from './random.ts'
import { play } from './simulation.ts'

// Seconds of work take minutes where others have the cores.
vi.setConfig({ testTimeout: 300_000 })

function drawObserver(words: Partial<SubscriptionPlan>): SubscriptionPlan {
  return { ...drawSubscription(new Random(1), 'observers', 1), ...words }
}

/** The first run from this seed on that broke a promise. */
async function firstBroken(seed: number, runs: number, options: Parameters<typeof play>[1] = {}) {
  for (let n = 0; n < runs; n++) {
    const run = await play(seed + n, options)
    if (run.violation !== undefined) return run
  }
  return undefined
}

test('100 random orders of faults lose, repeat and reorder nothing', async () => {
  expect(await firstBroken(1, 100)).toBeUndefined()
})

test('the same seed plays the same run', async () => {
  const stories: string[][] = [[], []]
  // Tokens and names of workers are random, and say nothing.
  const mask = (line: string) => line.replace(/\d{12,}|"[\w-]{8}"|\\"[\w-]{8}\\"/g, '…')
  for (const story of stories) await play(1_382, { tell: (line) => story.push(mask(line)) })
  expect(stories[0]!.length).toBeGreaterThan(100)
  expect(stories[0]).toEqual(stories[1])
})

describe('a safety that is switched off is missed', () => {
  /** What is found then, and faults that it guards against. */
  const plays: Readonly<Record<Safety, { found: RegExp; change?: (plan: Plan) => Plan }>> = {
    'save number': { found: /left twice|came back/ },
    term: {
      found: /came back|called twice/,
      change: (plan) => ({
        ...plan,
        events: 100,
        processes: 2,
        path: { ...plan.path, late: 0.2 },
        faults: ['long pause', 'lost lock', 'restart'],
        faultEveryMs: 500,
        faultCount: 8,
        troubleMs: 60_000,
      }),
    },
    bound: { found: /called too many/ },
    'order of keys': { found: /order: event/ },
    'waiting keys': { found: /order: observers/ },
    'turns of rows': { found: /order: row/ },
    token: {
      found: /called twice: row/,
      change: (plan) => ({
        ...plan,
        events: 40,
        spacingMs: 20,
        processes: 2,
        subscriptions: [drawObserver({ isOrdered: false, places: 20, concurrency: 16, mostUnsaved: 256 })],
        path: { ...plan.path, latencyMs: 5, late: 0.1, lostQuestions: 0, lostAnswers: 0, refused: 0, deadly: 0 },
        faults: [],
        troubleMs: 60_000,
        fates: { ...plan.fates, atOnce: 0, flaky: 0.9, slow: 0.9, hanging: 0 },
      }),
    },
  }

  test.each(SAFETIES)('%s', async (safety) => {
    const { found, change } = plays[safety]
    const options = { without: [safety], ...(change && { change }) }
    const broken = await firstBroken(1, 200, options)
    expect(broken?.violation).toMatch(found)
    const again = await play(broken!.seed, options)
    expect(again).toEqual(broken)
  })
})

test('a dead letter or a parked event that the server writes late takes no later checkpoint back', async () => {
  const change = (plan: Plan): Plan => ({
    ...plan,
    events: 60,
    subscriptions: [{ ...plan.subscriptions[0]!, onFailure: 'park', concurrency: 16, checkpoint: 'coalesced' }],
    path: { ...plan.path, late: 0.2 },
    fates: { ...plan.fates, flaky: 0.3, poison: 0 },
  })
  expect(await firstBroken(1, 40, { change })).toBeUndefined()
})

test('a statement that the simulated database does not know is named', () => {
  expect(() => statementOf('select 1 from nowhere')).toThrow(
    /knows no statement for this text.*\nselect 1 from nowhere/s,
  )
})

describe('npm run simulate', () => {
  async function call(...args: string[]) {
    const out = vi.spyOn(console, 'log').mockImplementation(() => {})
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      const code = await main(args)
      const textOf = (spy: typeof out) => spy.mock.calls.map(([line]) => line).join('\n')
      return { code, out: textOf(out), errors: textOf(errors) }
    } finally {
      out.mockRestore()
      errors.mockRestore()
    }
  }

  test('says that promises were kept, over how many runs and steps', async () => {
    const { code, out } = await call('--seed', '1', '--runs', '3')
    expect([code, out]).toEqual([0, expect.stringMatching(/^KEPT: 3 runs from seed 1, \d+ steps in /)])
  })

  test('names the seed of a run that broke a promise, and the command that plays it again', async () => {
    const { code, out } = await call('--seed', '1', '--runs', '50', '--without', 'bound')
    expect(code).toBe(1)
    const seed = /BROKEN with seed (\d+): observers: called too many/.exec(out)?.[1]
    expect(out).toContain(`Again: npm run simulate -- --seed ${seed} --runs 1 --without 'bound'`)
  })

  test('gives its verdict as JSON', async () => {
    const { code, out } = await call('--seed', '7', '--runs', '2', '--json')
    expect(code).toBe(0)
    const verdict = JSON.parse(out) as Verdict
    expect(verdict).toMatchObject({ seed: 7, runs: 2 })
    expect(verdict.violation).toBeUndefined()
  })

  test('refuses a wrong argument with what would be right', async () => {
    expect(await call('--runs', 'many')).toMatchObject({
      code: 2,
      errors: expect.stringContaining('--runs needs a whole number of at least 1, not "many".'),
    })
    expect(await call('--without', 'luck')).toMatchObject({
      code: 2,
      errors: `There is no safety "luck". There are: ${SAFETIES.join(', ')}.`,
    })
    expect(await call('--help')).toMatchObject({ code: 0, out: expect.stringContaining('--seed <n>') })
  })
})
