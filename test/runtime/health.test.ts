import { expect, test } from 'vitest'
import { createHealth, createTestClock } from '../../src/runtime/index.ts'

test('a process without parts, or with parts that are well, is live and ready', () => {
  const health = createHealth({ clock: createTestClock() })
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
  health.report({ name: 'database', live: true, ready: true })
  health.pulse('tailer', 30_000)
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
})

test('a database that is down makes the process not ready and leaves it live', () => {
  const health = createHealth({ clock: createTestClock() })
  const reason = 'database does not answer'
  health.report({ name: 'database', live: true, ready: false, reason })
  expect(health.check()).toEqual({ live: true, ready: false, reasons: [reason] })
  health.report({ name: 'database', live: true, ready: true })
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
})

test('a loop that makes no progress within its allowance is not live, with a reason', async () => {
  const clock = createTestClock()
  const health = createHealth({ clock })
  const pulse = health.pulse('tailer', 30_000)
  await clock.advance(30_000)
  expect(health.check().live).toBe(true)
  await clock.advance(10_000)
  expect(health.check()).toEqual({ live: false, ready: false, reasons: ['tailer made no progress for 40 s'] })
  pulse.beat()
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
})

test('a loop with nothing to do is healthy for any length of time', async () => {
  const clock = createTestClock()
  const health = createHealth({ clock })
  const pulse = health.pulse('tailer', 30_000)
  pulse.idle()
  await clock.advance(86_400_000)
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
  pulse.beat()
  await clock.advance(30_001)
  expect(health.check().live).toBe(false)
})

test('wall time that jumps an hour makes nothing stale', () => {
  const clock = createTestClock()
  const health = createHealth({ clock })
  health.pulse('tailer', 30_000)
  clock.jump(3_600_000)
  expect(health.check().live).toBe(true)
})

test('every part that is not well has its reason, and one that gave none is named', () => {
  const health = createHealth({ clock: createTestClock() })
  health.report({ name: 'database', live: true, ready: false })
  health.report({ name: 'relay', live: false, ready: false })
  expect(health.check()).toEqual({
    live: false,
    ready: false,
    reasons: ['database is not ready', 'relay is not live'],
  })
})

test('a part that was taken out is no reason any more, its pulse included', async () => {
  const clock = createTestClock()
  const health = createHealth({ clock })
  health.report({ name: 'tailer', live: true, ready: false, reason: 'tailer is stopping' })
  const pulse = health.pulse('tailer', 1000)
  health.forget('tailer')
  pulse.beat()
  await clock.advance(5000)
  expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
})
