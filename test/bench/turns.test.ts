import { expect, it } from 'vitest'
import { verdictOf } from '../../bench/goals.mjs'
import { compare, inTurns, pick, withSpread } from '../../bench/turns.mjs'

it('lets contenders take turns, each round the other way round, and counts no warm-up', async () => {
  const played: string[] = []
  const measured = await inTurns(
    { ours: 'ours', peer: 'peer' },
    {
      rounds: 2,
      async play(contender, { name, isWarmUp }) {
        expect(name).toBe(contender)
        played.push(isWarmUp ? `${name} warms up` : name)
        return played.length
      },
    },
  )
  expect(played).toEqual(['ours warms up', 'peer warms up', 'peer', 'ours', 'ours', 'peer'])
  expect(measured).toEqual({ ours: [4, 5], peer: [3, 6] })
  expect(pick(measured, (value) => value * 2)).toEqual({ ours: [8, 10], peer: [6, 12] })
})

it('compares turns of one round: a machine that becomes slower changes no ratio', () => {
  const rates = compare({ ours: [200, 100, 20], peer: [100, 50, 10] }, { unit: '/s' })
  expect(rates.ratio('ours', 'peer')).toBe(2)
  expect(rates.middle('ours')).toBe(100)
})

it('takes a shorter time as better', () => {
  const times = compare({ ours: [10, 20, 30], peer: [20, 40, 60] }, { unit: 'ms', less: true })
  expect(times.ratio('ours', 'peer')).toBe(2)
})

it('asks of every journey that JIT costs nothing, by the best turns, where the server has JIT', () => {
  const rates = compare({ aftercommit: [40, 96, 90], 'aftercommit, jit off': [100, 99, 70] }, { unit: '/s' })
  expect(rates.jitGoals()).toMatchObject([{ value: '0.96', met: true }])
  const times = compare({ aftercommit: [110, 900], 'aftercommit, jit off': [100, 500] }, { unit: 'ms', less: true })
  expect(times.jitGoals().map(verdictOf)).toEqual(['MISS'])
  expect(compare({ aftercommit: [1] }, { unit: 'ms' }).jitGoals()).toEqual([])
})

it('shows the median with the least and the most', () => {
  expect(withSpread([1_234.4, 1_180, 1_301], 'calls/s')).toBe('1,234 calls/s (1,180 to 1,301)')
  expect(withSpread([7.126, 33], 'ms')).toBe('33.0 ms (7.13 to 33.0)')
})
