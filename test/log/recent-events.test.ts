import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createRecentEvents } from '../../src/log/recent-events.ts'
import { sampleEvent } from '../events/sample-event.ts'

const eventAt = (position: bigint) => sampleEvent({ position })
const positionsOf = (events: readonly { position: bigint }[] | undefined) => events?.map(({ position }) => position)

describe('the recent events', () => {
  test('are read from any position they reach back to', () => {
    const recent = createRecentEvents(0n)
    for (const position of [1n, 2n, 5n]) recent.push(eventAt(position), 10)
    expect(positionsOf(recent.read(0n, 10))).toEqual([1n, 2n, 5n])
    expect(positionsOf(recent.read(2n, 10))).toEqual([5n])
    expect(positionsOf(recent.read(3n, 10))).toEqual([5n])
    expect(positionsOf(recent.read(5n, 10))).toEqual([])
  })

  test('are handed out at most as many as were asked for, oldest first', () => {
    const recent = createRecentEvents(0n)
    for (const position of [1n, 2n, 3n]) recent.push(eventAt(position), 10)
    expect(positionsOf(recent.read(0n, 2))).toEqual([1n, 2n])
  })

  test('say that they do not reach back far enough rather than leave something out', () => {
    const recent = createRecentEvents(10n)
    recent.push(eventAt(12n), 10)
    expect(recent.read(9n, 10)).toBeUndefined()
    expect(positionsOf(recent.read(10n, 10))).toEqual([12n])
  })

  test('are bounded by number: the oldest go', () => {
    const recent = createRecentEvents(0n, { maxEvents: 3 })
    for (let position = 1n; position <= 20n; position++) {
      recent.push(eventAt(position), 1)
      const oldest = position > 3n ? position - 3n : 0n
      expect(recent.after).toBe(oldest)
      expect(positionsOf(recent.read(oldest, 10))).toHaveLength(Number(position - oldest))
    }
    expect(recent.read(16n, 10)).toBeUndefined()
    expect(positionsOf(recent.read(17n, 10))).toEqual([18n, 19n, 20n])
  })

  test('are bounded by size, but the newest stays however large it is', () => {
    const recent = createRecentEvents(0n, { maxSize: 100 })
    recent.push(eventAt(1n), 60)
    recent.push(eventAt(2n), 60)
    expect(positionsOf(recent.read(recent.after, 10))).toEqual([2n])
    recent.push(eventAt(3n), 1_000)
    expect(positionsOf(recent.read(recent.after, 10))).toEqual([3n])
    recent.push(eventAt(4n), 50)
    expect(positionsOf(recent.read(recent.after, 10))).toEqual([4n])
  })

  test('let go of the memory of what went, not only of its place', async () => {
    const recent = createRecentEvents(0n, { maxSize: 100 })
    const went = pushAndWatch(recent)
    for (let position = 2n; position <= 10n; position++) recent.push(eventAt(position), 60)
    // A weak reference that was just made counts as strong until the end of the turn.
    await turn()
    collectGarbage()
    expect(went.deref()).toBeUndefined()
  })

  test('begin anew in another history', () => {
    const recent = createRecentEvents(0n)
    for (const position of [1n, 2n, 3n]) recent.push(eventAt(position), 10)
    recent.restart(2n)
    expect(recent.after).toBe(2n)
    expect(recent.read(1n, 10)).toBeUndefined()
    expect(recent.read(2n, 10)).toEqual([])
    recent.push(eventAt(3n), 10)
    expect(positionsOf(recent.read(2n, 10))).toEqual([3n])
  })
})

/** In a function of its own, so that no variable of the test keeps the event. */
function pushAndWatch(recent: ReturnType<typeof createRecentEvents>): WeakRef<object> {
  const event = eventAt(1n)
  recent.push(event, 60)
  return new WeakRef(event)
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  collect()
}
