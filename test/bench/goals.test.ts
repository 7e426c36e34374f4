import { expect, it } from 'vitest'
import { anyMissed, atLeast, atMost, didNotEnd, later, verdictOf } from '../../bench/goals.mjs'

it('says whether a figure reaches its goal', () => {
  expect(verdictOf(atLeast('ratio', 0.8, 0.8))).toBe('ok')
  expect(verdictOf(atLeast('ratio', 0.79, 0.8))).toBe('MISS')
  expect(verdictOf(atMost('time', 51, 50, 'ms'))).toBe('MISS')
  expect(atMost('time', 7, 50, 'ms')).toMatchObject({ value: '7.00 ms', wanted: 'goal ≤ 50 ms' })
})

it('shows a later goal that is missed without failing the run', () => {
  const missed = later(atLeast('ratio', 0.97, 1.2))
  expect([verdictOf(missed), missed.wanted]).toEqual(['later', 'later goal ≥ 1.2'])
  expect(verdictOf(later(atLeast('ratio', 1.3, 1.2)))).toBe('ok')
  expect(anyMissed([{ goals: [missed] }])).toBe(false)
  expect(anyMissed([{ goals: [missed, atLeast('ratio', 0.5, 0.8)] }])).toBe(true)
})

it('counts a figure that could not be measured as a miss', () => {
  expect(verdictOf(atLeast('ratio', Number.NaN, 0.8))).toBe('MISS')
})

it('counts a journey that did not end as a miss, and says why', () => {
  const goal = didNotEnd(new Error('waited 60 s for the last delivery'))
  expect([verdictOf(goal), goal.value]).toEqual(['MISS', 'waited 60 s for the last delivery'])
})
