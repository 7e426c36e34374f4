import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/index.ts'
import { parseRetry } from '../../src/runtime/index.ts'
import { decideFailure, type FailedTry } from '../../src/subscriptions/failure.ts'
import { GiveUp, RetryAfter } from '../../src/subscriptions/index.ts'

const POLICY = parseRetry({ maxAttempts: 4, initialDelay: '1s', maxDelay: '60s' })
const HALF = () => 0.5

function decide(failed: Partial<FailedTry>) {
  const first = { attempt: 1, faults: 0, byHandler: true, connectionLost: false, committed: 'nothing' } as const
  return decideFailure({ error: new Error('broken'), ...first, ...failed }, POLICY, HALF)
}

function sqlError(code: string, message = 'refused by the server'): Error {
  return Object.assign(new Error(message), { code })
}

/** Faults in a row until one counts; undefined when none of the first hundred does. */
function firstCounted(failed: Partial<FailedTry>): number | undefined {
  const faults = [...Array(100).keys()].find((n) => {
    const verdict = decide({ ...failed, faults: n })
    return verdict.kind === 'dead' || verdict.counts
  })
  return faults === undefined ? undefined : faults + 1
}

describe('a failed attempt', () => {
  it('is followed by three more, each after twice the time, and then by a dead letter', () => {
    const verdicts = [1, 2, 3, 4].map((attempt) => decide({ attempt }))
    expect(verdicts).toEqual([
      { kind: 'retry', delayMs: 1_000, counts: true, isFault: false },
      { kind: 'retry', delayMs: 2_000, counts: true, isFault: false },
      { kind: 'retry', delayMs: 4_000, counts: true, isFault: false },
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

  it('of a statement that can only fail again counts', () => {
    const error = Object.assign(new Error('null value'), { code: '23502' })
    expect(decide({ error, attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it('by the lost connection of the transaction does not count, and counts when the handler lost another service', () => {
    const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    expect(decide({ error, attempt: 4, connectionLost: true })).toMatchObject({ counts: false })
    expect(decide({ error, attempt: 4, byHandler: false })).toMatchObject({ counts: false })
    expect(decide({ error, attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it('whatever was thrown, even nothing, is decided', () => {
    for (const error of [undefined, null, 'text', 7, Object.create(null)]) {
      expect(decide({ error })).toMatchObject({ kind: 'retry' })
    }
  })
})

describe('a fault', () => {
  it.each(['57014', '55P03', '53200', '55006', '25P03', '23505'])(
    'is not what the statement of a handler raised with %s: it counts at once, as the last attempt too',
    (code) => {
      expect(decide({ error: sqlError(code) })).toMatchObject({ kind: 'retry', counts: true, isFault: false })
      expect(decide({ error: sqlError(code), attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
    },
  )

  it.each(['40001', '40P01'])('is a conflict (%s): it counts from the tenth in a row on', (code) => {
    expect(firstCounted({ error: sqlError(code) })).toBe(10)
    expect(decide({ error: sqlError(code), faults: 10, attempt: 4 })).toEqual({ kind: 'dead', hopeless: false })
  })

  it.each(['08006', '53300', '53100', '58030', '57P01', '57P02', '57P03', '25006'])(
    'of the server or the path (%s) never counts while this process commits nothing either',
    (code) => {
      expect(firstCounted({ error: sqlError(code) })).toBeUndefined()
    },
  )

  it.each(['08006', '53300', '57P01', '57P03', '25006'])(
    'of the server (%s) counts once other work of the process was committed since the one before',
    (code) => {
      expect(firstCounted({ error: sqlError(code), committed: 'work' })).toBe(1)
      expect(firstCounted({ error: sqlError(code), committed: 'housekeeping' })).toBe(10)
    },
  )

  it('of a full disk counts from the tenth on only: small updates still fit while inserts fail', () => {
    expect(firstCounted({ error: sqlError('53100'), committed: 'work' })).toBe(10)
    expect(firstCounted({ error: sqlError('58030'), committed: 'work' })).toBe(10)
  })

  it.each(['08006', '53100', '57P01', '57P03'])(
    'of the server (%s) in a statement of ours never counts: the handler had no part',
    (code) => {
      expect(firstCounted({ error: sqlError(code), byHandler: false, committed: 'work' })).toBeUndefined()
    },
  )

  it.each(['57014', '55P03', '53200'])(
    'of a statement of ours (%s) counts from the tenth on if other work is committed: a deferred trigger fails at COMMIT',
    (code) => {
      expect(firstCounted({ error: sqlError(code), byHandler: false, committed: 'work' })).toBe(10)
      expect(firstCounted({ error: sqlError(code), byHandler: false, committed: 'housekeeping' })).toBeUndefined()
    },
  )

  it('is POOL_EXHAUSTED when no connection was free for our transaction, not when the handler threw it', () => {
    const error = new AftercommitError('POOL_EXHAUSTED', 'all in use')
    expect(firstCounted({ error, byHandler: false, committed: 'work' })).toBeUndefined()
    expect(decide({ error })).toMatchObject({ counts: true, isFault: false })
  })

  it('is a plan that an ALTER TABLE made useless', () => {
    const error = sqlError('0A000', 'cached plan must not change result type')
    expect(decide({ error, attempt: 4 })).toMatchObject({ kind: 'retry', counts: false })
  })

  it('that does not count is repeated at growing distances of at most ten seconds', () => {
    const delays = [0, 1, 2, 20].map(
      (faults) => (decide({ error: sqlError('57P03'), faults }) as { delayMs: number }).delayMs,
    )
    expect(delays.slice(0, 3)).toEqual([100, 200, 400])
    expect(delays[3]).toBeGreaterThan(5_000)
    expect(delays[3]).toBeLessThanOrEqual(10_000)
  })
})
