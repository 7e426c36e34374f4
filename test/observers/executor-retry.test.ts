import { describe, expect, it } from 'vitest'
import { GiveUp, RetryAfter } from '../../src/index.ts'
import type { RetryOptions } from '../../src/runtime/index.ts'
import { createObserverExecutor, recordingActions, testClock, testEvent } from '../../src/testing/index.ts'

/** Times of all attempts, in milliseconds since the first. Fails as often as told. */
async function attemptsOf(retry: RetryOptions | undefined, failures: number, type = 'log', error?: Error) {
  const clock = testClock()
  const times: number[] = []
  const actions = {
    execute() {
      times.push(clock.monotonic())
      if (times.length <= failures) throw error ?? new Error('temporary')
    },
  }
  const action = type === 'webhook' ? { type, url: 'https://example.com' } : { type }
  const config = { observers: { rule: { on: '*', ...(retry && { retry }), actions: [action] } } }
  const executor = createObserverExecutor({ config, actions, clock })
  const results = await executor.process(testEvent('order.placed'))
  return { times, result: results.rule?.[0], executor }
}

describe('attempts', () => {
  const three = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '100ms', backoff: 'fixed' } as const

  it('end with the first that succeeds', async () => {
    const { times, result } = await attemptsOf(three, 0)
    expect(times).toEqual([0])
    expect(result).toMatchObject({ success: true, attempts: 1 })
  })

  it('go on after a failure, by the policy', async () => {
    const { times, result, executor } = await attemptsOf(three, 2)
    expect(times).toEqual([0, 10, 20])
    expect(result).toMatchObject({ success: true, attempts: 3 })
    expect(executor.summary).toMatchObject({ succeeded: 1, failed: 0, retries: 2 })
    expect(await executor.deadLetters.count()).toBe(0)
  })

  it('end with the last one, and the letter says how many there were and what the last one said', async () => {
    const { times, result, executor } = await attemptsOf(three, 9)
    expect(times).toHaveLength(3)
    expect(result).toMatchObject({ success: false, outcome: 'dead', attempts: 3, message: 'temporary' })
    const [letter] = await executor.deadLetters.list()
    expect(letter).toMatchObject({ attempts: 3, error: { code: 'OB013' } })
    expect(letter?.error.message).toMatch(/failed 3 times.*temporary/)
  })

  it('carry the same idempotency key, and see the same event', async () => {
    const actions = recordingActions().failing('no')
    const config = { observers: { rule: { on: '*', retry: three, actions: [{ type: 'log' }] } } }
    const event = testEvent('order.placed', { payload: { total: 3, at: [1, 2] } })
    await createObserverExecutor({ config, actions }).process(event)
    expect(actions.executions.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(new Set(actions.executions.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(actions.executions[2]?.event.payload).toEqual({ total: 3, at: [1, 2] })
  })
})

describe('waits', () => {
  it('double up to the longest one', async () => {
    const { times } = await attemptsOf({ maxAttempts: 6, initialDelay: '1s', maxDelay: '5s' }, 9)
    expect(times).toEqual([0, 1_000, 3_000, 7_000, 12_000, 17_000])
  })

  it('are never longer than the longest one, the first and fixed ones included', async () => {
    const fixed = { maxAttempts: 3, initialDelay: '10s', maxDelay: '2s', backoff: 'fixed' } as const
    expect((await attemptsOf(fixed, 9)).times).toEqual([0, 2_000, 4_000])
    const linear = { maxAttempts: 4, initialDelay: '1s', maxDelay: '2s', backoff: 'linear' } as const
    expect((await attemptsOf(linear, 9)).times).toEqual([0, 1_000, 3_000, 5_000])
  })

  it('go by the list where there is one', async () => {
    expect((await attemptsOf({ schedule: ['5s', '1m'] }, 9)).times).toEqual([0, 5_000, 65_000])
  })

  it('are three attempts within seconds for what stays in the house, without a word about it', async () => {
    expect((await attemptsOf(undefined, 9)).times).toEqual([0, 1_000, 3_000])
  })

  it('are hours for other people’s services, without a word about it', async () => {
    const { times } = await attemptsOf(undefined, 99, 'webhook')
    expect(times).toHaveLength(8)
    expect(times.at(-1)).toBeGreaterThan(5 * 3_600_000)
  })
})

describe('an error that says more', () => {
  it('gives up at once when it says that no attempt would help', async () => {
    const { times, executor } = await attemptsOf(undefined, 9, 'log', new GiveUp('no such customer'))
    expect(times).toEqual([0])
    expect(await executor.deadLetters.list()).toMatchObject([{ attempts: 1, error: { message: 'no such customer' } }])
  })

  it('waits as long as it was asked to', async () => {
    const { times } = await attemptsOf({ maxAttempts: 2 }, 9, 'log', new RetryAfter('1h'))
    expect(times).toEqual([0, 3_600_000])
  })
})
