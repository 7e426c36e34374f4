import { describe, expect, it } from 'vitest'
import { createClaimSize } from '../../src/delivery/claim-size.ts'

const LONG = 60_000

function endMany(pace: ReturnType<typeof createClaimSize>, n: number): void {
  for (let i = 0; i < n; i++) pace.ended()
}

describe('how much is claimed', () => {
  it('begins with what can be run at once', () => {
    expect(createClaimSize(10).room(0, 0, LONG)).toBe(10)
  })

  it('doubles while what was held ends between two claims, up to a limit, and shrinks when it does not', () => {
    const pace = createClaimSize(10)
    const rooms = Array.from({ length: 8 }, () => {
      endMany(pace, 1_000)
      return pace.room(0, 0, 0)
    })
    expect(rooms).toEqual([20, 40, 80, 160, 320, 500, 500, 500])
    expect(pace.room(0, 0, 0)).toBe(250)
    expect(pace.room(0, 0, 0)).toBe(125)
  })

  it('is never less than what can be run at once', () => {
    const pace = createClaimSize(600)
    for (let n = 0; n < 5; n++) expect(pace.room(0, 0, 0)).toBe(600)
  })

  it('waits until half is used up, since a statement for one is too much', () => {
    const pace = createClaimSize(10)
    expect(pace.room(6, 0, 0)).toBe(0)
    expect(pace.room(5, 0, 0)).toBe(5)
  })

  it('does not wait for long while there is a place to run more', () => {
    const pace = createClaimSize(10)
    expect(pace.room(9, 0, 0)).toBe(0)
    expect(pace.room(9, 0, LONG)).toBe(1)
    expect(pace.room(10, 0, LONG)).toBe(0)
    expect(pace.patienceMs(9)).toBeLessThan(100)
    expect(pace.patienceMs(10)).toBe(1_000)
  })

  it('never claims beyond what may be held', () => {
    const pace = createClaimSize(10)
    for (let n = 0; n < 4; n++) {
      endMany(pace, 1_000)
      pace.room(0, 0, 0)
    }
    // 160 may be held; slow by now, so it shrinks to 80 and no more are taken.
    expect(pace.room(80, 0, 0)).toBe(0)
    expect(pace.room(100, 0, LONG)).toBe(0)
  })
})

describe('how long it rests', () => {
  it('until the next one is due, or half a minute, where the bell rings for new work', () => {
    const pace = createClaimSize(10)
    expect(pace.restMs(undefined, true)).toBe(30_000)
    expect(pace.restMs(1_234, true)).toBe(1_234)
    expect(pace.restMs(3_600_000, true)).toBe(30_000)
    expect(pace.restMs(0.2, true)).toBe(1)
  })

  it('less and less often, down to once a second, where it is not rung for', () => {
    const pace = createClaimSize(10)
    const rests = Array.from({ length: 8 }, () => pace.restMs(undefined, false))
    expect(rests).toEqual([50, 100, 200, 400, 800, 1_000, 1_000, 1_000])
    expect(pace.restMs(10, false)).toBe(10)
  })

  it('likewise while something is due and waits for a limit', () => {
    const pace = createClaimSize(10)
    expect([0, 0, 0].map((due) => pace.restMs(due, true))).toEqual([50, 100, 200])
    expect(pace.restMs(undefined, true)).toBe(30_000)
    expect(pace.restMs(0, true)).toBe(50)
  })
})
