import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/index.ts'
import { parseRetry } from '../../src/runtime/index.ts'
import { decideFailure, type FailedTry } from '../../src/subscriptions/failure.ts'
import { GiveUp, RetryAfter } from '../../src/subscriptions/index.ts'

const POLICY = parseRetry({ maxAttempts: 4, initialDelay: '1s', maxDelay: '60s' })
const HALF = () => 0.5

function decide(failed: Partial<FailedTry>) {
  return decideFailure(
    { error: new Error('broken'), attempt: 1, faults: 0, transactional: false, ...failed },
    POLICY,
    HALF,
  )
}

describe('a failed try', () => {
  it('is followed by three more, each after twice the time, and then by a dead letter', () => {
    const verdicts = [1, 2, 3, 4].map((attempt) => decide({ attempt }))
    expect(verdicts).toEqual([
      { kind: 'retry', delayMs: 1_000, counts: true },
      { kind: 'retry', delayMs: 2_000, counts: true },
      { kind: 'retry', delayMs: 4_000, counts: true },
      { kind: 'dead', hopeless: false },
    ])
  })

  it('with RetryAfter waits as long as it says, and no longer than a day', () => {
    expect(decide({ error: new RetryAfter('30s') })).toMatchObject({ delayMs: 30_000, counts: true })
    expect(decide({ error: new RetryAfter('300d') })).toMatchObject({ delayMs: 86_400_000 })
    expect(decide({ error: new RetryAfter('30s'), attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it('with GiveUp is a dead letter at once', () => {
    expect(decide({ error: new GiveUp('no such customer') })).toEqual({ kind: 'dead', hopeless: true })
  })

  it.each(['UNAUTHORIZED', 'UNDECODABLE', 'UPCAST_FAILED', 'TOO_DEEP'] as const)(
    'that no other try can change (%s) is a dead letter at once',
    (code) => {
      expect(decide({ error: new AftercommitError(code, 'hopeless') })).toEqual({ kind: 'dead', hopeless: true })
    },
  )

  it.each(['40001', '40P01', '57P01', '57P02', '57P03', '08006'])(
    'in which the database had its part (%s) does not count, however many came before',
    (code) => {
      const error = Object.assign(new Error('not now'), { code })
      expect(decide({ error, attempt: 99, faults: 50 })).toMatchObject({ kind: 'retry', counts: false })
    },
  )

  it('of a plan that an ALTER TABLE made useless does not count', () => {
    const error = Object.assign(new Error('cached plan must not change result type'), { code: '0A000' })
    expect(decide({ error, attempt: 4 })).toMatchObject({ kind: 'retry', counts: false })
  })

  it('of a statement that can only fail again counts', () => {
    const error = Object.assign(new Error('null value'), { code: '23502' })
    expect(decide({ error, attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it('by a lost connection does not count in our own transaction, and counts when it was to somebody else', () => {
    const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    expect(decide({ error, attempt: 4, transactional: true })).toMatchObject({ counts: false })
    expect(decide({ error, attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it('that does not count is repeated at growing distances of at most ten seconds', () => {
    const error = Object.assign(new Error('deadlock'), { code: '40P01' })
    const delays = [0, 1, 2, 20].map((faults) => (decide({ error, faults }) as { delayMs: number }).delayMs)
    expect(delays.slice(0, 3)).toEqual([100, 200, 400])
    expect(delays[3]).toBeGreaterThan(5_000)
    expect(delays[3]).toBeLessThanOrEqual(10_000)
  })

  it('whatever was thrown, even nothing, is decided', () => {
    for (const error of [undefined, null, 'text', 7, Object.create(null)]) {
      expect(decide({ error })).toMatchObject({ kind: 'retry' })
    }
  })
})
