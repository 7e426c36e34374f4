import { describe, expect, it } from 'vitest'
import { afterRead, afterTimeout, FIRST_WINDOW, type ReadWindow, type WindowRead } from '../../src/log/read-window.ts'

const of = (positions: bigint, most = 1_000_000n): ReadWindow => ({ positions, most })
const next = (window: ReadWindow, read: Partial<WindowRead>) =>
  afterRead(window, { covered: window.positions, found: 0, limit: 500, ...read }).positions

describe('the window of reads by position', () => {
  it('shrinks to two pages when every event passes the filter', () => {
    expect(next(FIRST_WINDOW, { covered: 500n, found: 500 })).toBe(1_000n)
    expect(next(of(1_000n), { covered: 500n, found: 500 })).toBe(1_000n)
  })

  it('holds two pages at the density found, whether the page was full or not', () => {
    expect(next(of(100_000n), { covered: 50_000n, found: 500 })).toBe(100_000n)
    expect(next(of(100_000n), { covered: 100_000n, found: 1_000, limit: 1_000 })).toBe(200_000n)
    expect(next(of(80_000n), { found: 400 })).toBe(200_000n)
  })

  it('grows four times at most after one read, up to a million', () => {
    expect(next(of(10_000n), {})).toBe(40_000n)
    expect(next(of(10_000n), { found: 1 })).toBe(40_000n)
    expect(next(of(900_000n), {})).toBe(1_000_000n)
    expect(next(of(1_000_000n), { found: 1 })).toBe(1_000_000n)
  })

  it('reaches a million within four reads that find nothing', () => {
    let window = FIRST_WINDOW
    for (let n = 0; n < 4; n++) window = afterRead(window, { covered: window.positions, found: 0, limit: 500 })
    expect(window.positions).toBe(1_000_000n)
  })

  it('stays as it is when the end of the log cut an empty read short', () => {
    expect(next(of(40_000n), { covered: 3n })).toBe(40_000n)
    expect(next(of(40_000n), { covered: 0n })).toBe(40_000n)
  })

  it('never has fewer than ten positions', () => {
    expect(next(of(1_000n), { covered: 1n, found: 1, limit: 1 })).toBe(10n)
  })

  it('is a quarter after a read that the server cancelled, down to ten, and then gives up', () => {
    let window: ReadWindow | undefined = of(1_000n)
    const seen: bigint[] = []
    for (window = afterTimeout(window); window !== undefined; window = afterTimeout(window)) seen.push(window.positions)
    expect(seen).toEqual([250n, 62n, 15n, 10n])
  })

  it('comes back to the width that was cancelled step by step, not with the next empty read', () => {
    let window = afterTimeout(of(40_000n))!
    let reads = 0
    for (; window.positions < 40_000n; reads++) {
      window = afterRead(window, { covered: window.positions, found: 0, limit: 500 })
    }
    expect(reads).toBe(12)
  })
})
