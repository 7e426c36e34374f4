import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Backoff, backoffDelay, parseRetry, reconnectDelay } from '../../src/runtime/index.ts'

const middle = () => 0.5
const exponential: Backoff = { strategy: 'exponential', initialMs: 1000, maxMs: 60_000 }

describe('backoffDelay', () => {
  test('exponential doubles up to the maximum', () => {
    const delays = [1, 2, 3, 4, 5, 6].map((attempt) => backoffDelay(attempt, { ...exponential, jitter: 0 }))
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000])
    expect(backoffDelay(7, { ...exponential, jitter: 0 })).toBe(60_000)
  })

  test('linear adds the first delay each time', () => {
    const policy: Backoff = { strategy: 'linear', initialMs: 1000, maxMs: 2500, jitter: 0 }
    expect([1, 2, 3, 4].map((attempt) => backoffDelay(attempt, policy))).toEqual([1000, 2000, 2500, 2500])
  })

  test('fixed stays the same', () => {
    const policy: Backoff = { strategy: 'fixed', initialMs: 700, maxMs: 60_000 }
    expect([1, 2, 50].map((attempt) => backoffDelay(attempt, policy, middle))).toEqual([700, 700, 700])
  })

  test('the first delay and a fixed one are capped as well', () => {
    expect(backoffDelay(1, { ...exponential, maxMs: 300, jitter: 0 })).toBe(300)
    expect(backoffDelay(1, { strategy: 'fixed', initialMs: 5000, maxMs: 300, jitter: 0 })).toBe(300)
  })

  test('jitter moves a delay by a quarter either way', () => {
    expect(backoffDelay(1, exponential, () => 0)).toBe(750)
    expect(backoffDelay(1, exponential, middle)).toBe(1000)
    expect(backoffDelay(1, exponential, () => 1)).toBe(1250)
  })

  test('capped delays stay spread out below the maximum', () => {
    const delays = [0, 0.25, 0.5, 0.75, 1].map((dice) => backoffDelay(99, exponential, () => dice))
    expect(delays).toEqual([45_000, 48_750, 52_500, 56_250, 60_000])
  })

  test('a schedule gives its delays one by one and repeats the last', () => {
    const policy: Backoff = { ...exponential, scheduleMs: [5000, 30_000], maxMs: 30_000, jitter: 0 }
    expect([1, 2, 3, 9].map((attempt) => backoffDelay(attempt, policy))).toEqual([5000, 30_000, 30_000, 30_000])
  })

  test('no delay at all stays no delay, however many attempts', () => {
    expect(backoffDelay(10_000, { strategy: 'exponential', initialMs: 0, maxMs: 60_000 })).toBe(0)
  })

  test('every delay is a whole number between 0 and the maximum, for any attempt and any dice', () => {
    const policies = fc.record({
      strategy: fc.constantFrom('exponential' as const, 'linear' as const, 'fixed' as const),
      initialMs: fc.nat(10_000_000),
      maxMs: fc.nat(10_000_000),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const attempts = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(10_000, 2 ** 31))
    fc.assert(
      fc.property(policies, attempts, fc.double({ min: 0, max: 1, noNaN: true }), (policy, attempt, dice) => {
        const delay = backoffDelay(attempt, policy, () => dice)
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(policy.maxMs)
      }),
    )
  })
})

test('reconnecting begins within a second and settles between 5 and 10 s, however long it takes', () => {
  expect(reconnectDelay(1, () => 1)).toBe(300)
  expect(reconnectDelay(10_000, () => 0)).toBe(5000)
  expect(reconnectDelay(10_000, () => 1)).toBe(10_000)
})

describe('parseRetry', () => {
  test('without settings: 3 attempts, 1 s doubling to 60 s', () => {
    expect(parseRetry()).toEqual({ maxAttempts: 3, strategy: 'exponential', initialMs: 1000, maxMs: 60_000 })
  })

  test('each setting replaces its own default only', () => {
    expect(parseRetry({ maxAttempts: 8, backoff: 'linear' })).toEqual({
      maxAttempts: 8,
      strategy: 'linear',
      initialMs: 1000,
      maxMs: 60_000,
    })
    expect(parseRetry({ initialDelay: '5s', maxDelay: 'PT5M' })).toMatchObject({ initialMs: 5000, maxMs: 300_000 })
  })

  test('a schedule sets the number of attempts and the longest delay', () => {
    expect(parseRetry({ schedule: ['5s', '30s', '2m'] })).toMatchObject({
      maxAttempts: 4,
      maxMs: 120_000,
      scheduleMs: [5000, 30_000, 120_000],
    })
    expect(parseRetry({ schedule: ['5s', '30s'], maxAttempts: 9 }).maxAttempts).toBe(9)
  })

  test.each([
    [{ maxAttempts: 0 }, /retry\.maxAttempts/],
    [{ maxAttempts: 1.5 }, /retry\.maxAttempts/],
    [{ maxAttempts: Number.NaN }, /retry\.maxAttempts/],
    [{ backoff: 'fibonacci' }, /retry\.backoff must be one of exponential, linear, fixed/],
    [{ schedule: [] }, /retry\.schedule/],
    [{ schedule: ['5s'], initialDelay: '1s' }, /retry\.initialDelay would have no effect/],
    [{ schedule: ['5s', 'soon'] }, /retry\.schedule\[1\] is "soon"/],
    [{ initialDelay: '5 min' }, /retry\.initialDelay is "5 min"/],
    [{ maxAttemps: 5 }, /retry\.maxAttemps is not a setting/],
    [{ constructor: 5 }, /retry\.constructor is not a setting/],
  ])('%j is refused by name', (options, message) => {
    expect(() => parseRetry(options as object)).toThrow(message)
  })
})
