import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createTestClock, systemClock } from '../../src/runtime/index.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('the system clock', () => {
  test('a sleep resolves after its time and leaves no listener on the signal', async () => {
    const { signal } = new AbortController()
    await systemClock.sleep(1, signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('an aborted sleep rejects with the reason and leaves neither timer nor listener', async () => {
    vi.useFakeTimers()
    const controller = new AbortController()
    const sleep = systemClock.sleep(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(sleep).rejects.toThrow('enough')
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  test('a sleep on a signal that has fired already rejects without setting a timer', async () => {
    vi.useFakeTimers()
    await expect(systemClock.sleep(60_000, AbortSignal.abort('gone'))).rejects.toBe('gone')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a sleep longer than the longest timer of Node lasts as long as asked', async () => {
    vi.useFakeTimers()
    const days = 86_400_000
    let done = false
    const sleep = systemClock.sleep(60 * days).then(() => {
      done = true
    })
    await vi.advanceTimersByTimeAsync(60 * days - 1)
    expect(done).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await sleep
    expect(done).toBe(true)
  })

  test('a long timer can be cancelled in any of its parts', () => {
    vi.useFakeTimers()
    const cancel = systemClock.setTimer(2 ** 33, () => {})
    vi.advanceTimersByTime(2 ** 32)
    cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a timer of NaN ms is refused, for Node would fire it at once', () => {
    expect(() => systemClock.setTimer(Number.NaN, () => {})).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
  })
})

describe('the test clock', () => {
  test('timers fire in the order they are due, those due together in the order they were set', async () => {
    const clock = createTestClock()
    const fired: string[] = []
    clock.setTimer(20, () => fired.push('second'))
    clock.setTimer(20, () => fired.push('third'))
    clock.setTimer(10, () => fired.push('first'))
    clock.setTimer(31, () => fired.push('too late'))
    await clock.advance(30)
    expect(fired).toEqual(['first', 'second', 'third'])
    expect(clock.monotonic()).toBe(30)
  })

  test('a sleeper that sleeps again wakes again within the same advance, at the right time', async () => {
    const clock = createTestClock()
    const woken: number[] = []
    const sleeper = (async () => {
      for (let round = 0; round < 3; round++) {
        await clock.sleep(10)
        woken.push(clock.monotonic())
      }
    })()
    await clock.advance(100)
    await sleeper
    expect(woken).toEqual([10, 20, 30])
  })

  test('an aborted sleep rejects at once and takes its timer with it', async () => {
    const clock = createTestClock()
    const controller = new AbortController()
    const sleep = clock.sleep(1000, controller.signal)
    expect(clock.timers).toBe(1)
    controller.abort('enough')
    await expect(sleep).rejects.toBe('enough')
    expect(clock.timers).toBe(0)
  })

  test('wall time can jump back while intervals and timers stay true', async () => {
    const clock = createTestClock({ now: new Date('2026-03-01T12:00:00Z') })
    let fired = false
    clock.setTimer(1000, () => {
      fired = true
    })
    clock.jump(-3_600_000)
    await clock.advance(1000)
    expect(fired).toBe(true)
    expect(clock.now().toISOString()).toBe('2026-03-01T11:00:01.000Z')
    expect(clock.monotonic()).toBe(1000)
  })
})
