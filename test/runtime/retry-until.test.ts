import { describe, expect, test } from 'vitest'
import { createTestClock, retryUntil } from '../../src/runtime/index.ts'

/** Fails so many times, then succeeds. Moves its clock on by every delay that it asked for. */
function failing(times: number) {
  const clock = createTestClock()
  const delays: number[] = []
  const work = (attempt: number) => {
    if (attempt <= times) throw new Error(`failure ${attempt}`)
    return attempt
  }
  const onRetry = (_: unknown, __: number, delayMs: number) => {
    delays.push(delayMs)
    queueMicrotask(() => void clock.advance(delayMs))
  }
  return { clock, work, onRetry, delays }
}

describe('retryUntil', () => {
  test('repeats the work with the delays asked for until it succeeds', async () => {
    const { work, delays, ...options } = failing(3)
    expect(await retryUntil(work, { ...options, delay: (attempt) => attempt * 10 })).toBe(4)
    expect(delays).toEqual([10, 20, 30])
  })

  test('without a delay waits longer from failure to failure, as after a lost connection', async () => {
    const { work, delays, ...options } = failing(12)
    await retryUntil(work, options)
    expect(delays[0]).toBeLessThanOrEqual(300)
    expect(delays.at(-1)).toBeGreaterThanOrEqual(5_000)
    expect(Math.max(...delays)).toBeLessThanOrEqual(10_000)
  })

  test('throws an error that may not be retried', async () => {
    const { work, delays, ...options } = failing(9)
    const mayRetry = (error: unknown, attempt: number) => attempt < 2 && (error as Error).message === 'failure 1'
    await expect(retryUntil(work, { ...options, mayRetry })).rejects.toThrow('failure 2')
    expect(delays).toHaveLength(1)
  })

  test('repeats nothing once its signal has fired, during the work or during a delay', async () => {
    const { clock, work } = failing(9)
    await expect(retryUntil(work, { clock, signal: AbortSignal.abort(new Error('over')) })).rejects.toThrow('failure 1')
    const stopping = new AbortController()
    const waiting = retryUntil(work, { clock, signal: stopping.signal })
    await new Promise(setImmediate)
    stopping.abort(new Error('over'))
    await expect(waiting).rejects.toThrow('over')
  })
})
