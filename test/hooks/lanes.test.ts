import { describe, expect, it } from 'vitest'
import { Lanes } from '../../src/hooks/lanes.ts'
import { testEvent } from '../../src/testing/index.ts'

const AT_ONCE = { latestWins: false, waitMs: 0, maxWaitMs: 0 }
const event = (position: number) => testEvent('lamp.lit', { position: BigInt(position) })

describe('lanes', () => {
  it('run one event of a key at a time, and different keys side by side', () => {
    const lanes = new Lanes(AT_ONCE)
    lanes.add(event(1), 'a', 0)
    lanes.add(event(2), 'a', 0)
    lanes.add(event(3), 'b', 0)
    const first = lanes.begin(0)!
    expect([first, lanes.begin(0)!].map(({ event: { position } }) => position)).toEqual([1n, 3n])
    expect(lanes.begin(0)).toBe(undefined)
    lanes.finish(first)
    expect(lanes.begin(0)!.event.position).toBe(2n)
    expect(lanes.size).toBe(2)
  })

  it('take the oldest first, so that a key with an endless supply starves nobody', () => {
    const lanes = new Lanes(AT_ONCE)
    for (const position of [1, 2, 3, 4]) lanes.add(event(position), position === 3 ? 'cold' : 'hot', 0)
    const order = []
    for (let item = lanes.begin(0); item; item = lanes.begin(0)) {
      order.push(item.event.position)
      lanes.finish(item)
    }
    expect(order).toEqual([1n, 2n, 3n, 4n])
  })

  it('keep an event that failed in front of its key until its time', () => {
    const lanes = new Lanes(AT_ONCE)
    lanes.add(event(1), 'a', 0)
    lanes.add(event(2), 'a', 0)
    lanes.retry(lanes.begin(0)!, 100)
    expect(lanes.begin(99)).toBe(undefined)
    expect(lanes.nextDueMs()).toBe(100)
    expect(lanes.begin(100)!.event.position).toBe(1n)
  })

  it('hand over only the newest of what waits, where only the latest counts', () => {
    const lanes = new Lanes({ ...AT_ONCE, latestWins: true })
    lanes.add(event(1), 'a', 0)
    const running = lanes.begin(0)!
    for (const position of [2, 3, 4]) lanes.add(event(position), 'a', 0)
    expect(lanes.size).toBe(2)
    lanes.finish(running)
    expect(lanes.begin(0)).toMatchObject({ event: { position: 4n }, coalesced: 3, from: 2n })
  })

  it('put what has come since in the place of a failed event, without trying it sooner', () => {
    const lanes = new Lanes({ ...AT_ONCE, latestWins: true })
    lanes.add(event(1), 'a', 0)
    const running = lanes.begin(0)!
    running.attempts = 2
    lanes.add(event(2), 'a', 0)
    lanes.retry(running, 500)
    lanes.add(event(3), 'a', 100)
    expect(lanes.begin(499)).toBe(undefined)
    expect(lanes.begin(500)).toMatchObject({ event: { position: 3n }, attempts: 2, coalesced: 3, from: 1n })
    expect(lanes.size).toBe(1)
  })

  it('wait until a key is quiet, but not for ever', () => {
    const lanes = new Lanes({ latestWins: true, waitMs: 100, maxWaitMs: 250 })
    lanes.add(event(1), 'a', 0)
    expect(lanes.nextDueMs()).toBe(100)
    lanes.add(event(2), 'a', 90)
    expect(lanes.begin(100)).toBe(undefined)
    expect(lanes.nextDueMs()).toBe(190)
    lanes.add(event(3), 'a', 180)
    expect(lanes.nextDueMs()).toBe(250)
    expect(lanes.begin(250)).toMatchObject({ event: { position: 3n }, coalesced: 3 })
    lanes.add(event(4), 'a', 260)
    expect(lanes.nextDueMs()).toBe(Number.POSITIVE_INFINITY)
  })

  it('start nothing of a key whose last call has not ended, even when it was given up', () => {
    const lanes = new Lanes(AT_ONCE)
    lanes.add(event(1), 'a', 0)
    const given = lanes.begin(0)!
    const letGo = lanes.hold('a')
    lanes.finish(given)
    lanes.add(event(2), 'a', 0)
    expect(lanes.begin(0)).toBe(undefined)
    letGo()
    expect(lanes.begin(0)!.event.position).toBe(2n)
  })

  it('know whether everything up to a position is over', () => {
    const lanes = new Lanes({ ...AT_ONCE, latestWins: true })
    expect(lanes.isDoneUpTo(9n)).toBe(true)
    lanes.add(event(5), 'a', 0)
    lanes.add(event(8), 'a', 0)
    expect(lanes.isDoneUpTo(4n)).toBe(true)
    expect(lanes.isDoneUpTo(5n)).toBe(false)
    const running = lanes.begin(0)!
    expect(lanes.isDoneUpTo(5n)).toBe(false)
    lanes.finish(running)
    expect(lanes.isDoneUpTo(8n)).toBe(true)
  })
})
