/** Random orders of faults, played against the simulated database; `npm run simulate` plays more of them. */
import { describe, expect, test, vi } from 'vitest'
import { SAFETIES, type Safety } from './database/safeties.ts'
import { statementOf } from './database/statements.ts'
import { main, type Verdict } from './main.ts'
import type { Plan } from './plan.ts'
import { play } from './simulation.ts'

/** The first run from this seed on that broke a promise. */
async function firstBroken(seed: number, runs: number, options: Parameters<typeof play>[1] = {}) {
  for (let n = 0; n < runs; n++) {
    const run = await play(seed + n, options)
    if (run.violation !== undefined) return run
  }
  return undefined
}

test('150 random orders of faults lose, repeat and reorder nothing', async () => {
  expect(await firstBroken(1, 150)).toBeUndefined()
})

test('the same seed plays the same run', async () => {
  const stories: string[][] = [[], []]
  for (const story of stories) await play(1_382, { tell: (line) => story.push(line) })
  expect(stories[0]!.length).toBeGreaterThan(100)
  expect(stories[0]).toEqual(stories[1])
})

describe('a safety that is switched off is missed', () => {
  const found: Readonly<Record<Safety, RegExp>> = {
    'save number': /left twice|came back/,
    term: /came back|called twice/,
    bound: /called too many/,
    'order of keys': /order/,
  }
  test.each(SAFETIES)('%s', async (safety) => {
    const broken = await firstBroken(1, 200, { without: [safety] })
    expect(broken?.violation).toMatch(found[safety])
    const again = await play(broken!.seed, { without: [safety] })
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
