import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { abortable, createTestClock, createWaker, withTimeout } from '../../src/runtime/index.ts'

describe('abortable', () => {
  test('gives what the promise gives and detaches from the signal', async () => {
    const { signal } = new AbortController()
    await expect(abortable(Promise.resolve(7), signal)).resolves.toBe(7)
    await expect(abortable(Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('rejects with the reason when the signal fires first, or had fired before', async () => {
    const controller = new AbortController()
    const waiting = abortable(new Promise(() => {}), controller.signal)
    controller.abort('enough')
    await expect(waiting).rejects.toBe('enough')
    await expect(abortable(new Promise(() => {}), controller.signal)).rejects.toBe('enough')
  })

  test('a promise that rejects after the signal has fired is not an unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', listen)
    let rejectLate = (_error: Error) => {}
    const late = new Promise<void>((_, reject) => {
      rejectLate = reject
    })
    await expect(abortable(late, AbortSignal.abort('enough'))).rejects.toBe('enough')
    rejectLate(new Error('late'))
    await new Promise(setImmediate)
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })
})

describe('withTimeout', () => {
  test('gives what the promise gives and cancels the timer', async () => {
    const clock = createTestClock()
    await expect(withTimeout(Promise.resolve(7), 1000, clock, 'It did not end')).resolves.toBe(7)
    await expect(withTimeout(Promise.reject(new Error('broken')), 1000, clock, 'It')).rejects.toThrow('broken')
    expect(clock.timers).toBe(0)
  })

  test('says what did not happen in which time', async () => {
    const clock = createTestClock()
    const result = withTimeout(new Promise(() => {}), 30_000, clock, 'The checkpoint was not written')
    const refusal = expect(result).rejects.toMatchObject({
      code: 'TIMED_OUT',
      message: 'The checkpoint was not written within 30 s.',
    })
    await clock.advance(30_000)
    await refusal
  })
})

describe('a waker', () => {
  test('a wait ends after its time when nobody wakes it', async () => {
    const clock = createTestClock()
    const wait = createWaker(clock).wait(1000)
    await clock.advance(1000)
    await expect(wait).resolves.toBe('elapsed')
  })

  test('a wake ends the current wait and cancels its timer', async () => {
    const clock = createTestClock()
    const waker = createWaker(clock)
    const wait = waker.wait(1000)
    waker.wake()
    await expect(wait).resolves.toBe('woken')
    expect(clock.timers).toBe(0)
  })

  test('a wake before the wait is not lost, and ten of them are one', async () => {
    const clock = createTestClock()
    const waker = createWaker(clock)
    for (let i = 0; i < 10; i++) waker.wake()
    await expect(waker.wait(1000)).resolves.toBe('woken')
    const second = waker.wait(1000)
    await clock.advance(1000)
    await expect(second).resolves.toBe('elapsed')
  })

  test('a wake between the end of one wait and the begin of the next is not lost', async () => {
    const clock = createTestClock()
    const waker = createWaker(clock)
    const first = waker.wait(10)
    await clock.advance(10)
    await first
    waker.wake()
    await expect(waker.wait(1000)).resolves.toBe('woken')
  })

  test('a wait ends with the signal, leaving nothing behind', async () => {
    const clock = createTestClock()
    const waker = createWaker(clock)
    const controller = new AbortController()
    const wait = waker.wait(1000, controller.signal)
    controller.abort('enough')
    await expect(wait).rejects.toBe('enough')
    expect(clock.timers).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  test('a wake after an aborted wait is kept for the next one', async () => {
    const waker = createWaker(createTestClock())
    const controller = new AbortController()
    const wait = waker.wait(1000, controller.signal)
    controller.abort('enough')
    await expect(wait).rejects.toBe('enough')
    waker.wake()
    await expect(waker.wait(1000)).resolves.toBe('woken')
  })
})
