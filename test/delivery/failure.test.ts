import { describe, expect, it } from 'vitest'
import { decideOutcome, isDestinationFault } from '../../src/delivery/failure.ts'
import { AftercommitError } from '../../src/errors.ts'
import { parseRetry } from '../../src/runtime/index.ts'
import { GiveUp, RetryAfter } from '../../src/subscriptions/index.ts'

const policy = parseRetry({ maxAttempts: 3, initialDelay: '1s', maxDelay: '60s' })
const middle = () => 0.5
const decide = (error: unknown, attempt = 1) => decideOutcome({ error, attempt }, policy, middle)
const telling = (words: object) => Object.assign(new Error('it said so'), words)

describe('a failed attempt', () => {
  it('is tried again by the policy until there have been enough', () => {
    expect(decide(new Error('no'), 1)).toEqual({ kind: 'retry', delayMs: 1_000, counts: true, isFault: false })
    expect(decide(new Error('no'), 2)).toEqual({ kind: 'retry', delayMs: 2_000, counts: true, isFault: false })
    expect(decide(new Error('no'), 3)).toMatchObject({ kind: 'dead' })
  })

  it('is the last one when no other would help', () => {
    expect(decide(new GiveUp('no such address'))).toMatchObject({ kind: 'dead' })
    expect(decide(telling({ transient: false }))).toMatchObject({ kind: 'dead' })
  })

  it('waits as long as the work or the destination asked for, if that is longer, and a day at most', () => {
    expect(decide(new RetryAfter('1h'))).toMatchObject({ delayMs: 3_600_000 })
    expect(decide(telling({ retryAfterMs: 90_000 }))).toMatchObject({ delayMs: 90_000 })
    expect(decide(telling({ retryAfterMs: 1 }))).toMatchObject({ delayMs: 1_000 })
    expect(decide(telling({ retryAfterMs: 1e12 }))).toMatchObject({ delayMs: 86_400_000 })
  })

  it('does not count, and is not held against the destination, when this host could not make it', () => {
    const error = telling({ transient: true, local: true })
    expect(decide(error, 3)).toMatchObject({ kind: 'retry', counts: false, delayMs: 5_000 })
    expect(isDestinationFault(error)).toBe(false)
  })

  it('does not count when the database between us failed', () => {
    expect(decide(Object.assign(new Error('deadlock'), { code: '40P01', severity: 'ERROR' }), 3)).toMatchObject({
      kind: 'retry',
      counts: false,
    })
  })

  it('may be anything that can be thrown', () => {
    for (const thrown of [undefined, null, 'text', 7, Symbol('odd')]) {
      expect(decide(thrown)).toMatchObject({ kind: 'retry', counts: true })
    }
  })
})

it('a destination is to blame when it did not answer or said that it cannot now, not when it refused', () => {
  expect(isDestinationFault(telling({ transient: true }))).toBe(true)
  expect(isDestinationFault(telling({ transient: true, single: true }))).toBe(false)
  expect(isDestinationFault(new AftercommitError('TIMED_OUT', 'too slow'))).toBe(true)
  expect(isDestinationFault(telling({ transient: false }))).toBe(false)
  expect(isDestinationFault(new Error('a mistake of ours'))).toBe(false)
  expect(isDestinationFault(null)).toBe(false)
})
