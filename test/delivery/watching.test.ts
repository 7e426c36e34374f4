import { describe, expect, it } from 'vitest'
import { nextLookMs } from '../../src/delivery/lease.ts'

const heard = { lockless: [], hears: true, spread: 1 }

describe('when a worker looks again', () => {
  it('is four times per lease for one that is alone and hears of changes', () => {
    expect(nextLookMs({ ...heard, others: 0 })).toBe(15_000)
  })

  it('is every two seconds for one that hears nothing', () => {
    expect(nextLookMs({ ...heard, others: 0, hears: false })).toBe(2_000)
    expect(nextLookMs({ ...heard, others: 50, hears: false })).toBe(2_000)
  })

  it('costs all together the same however many there are, until each must renew its lease anyway', () => {
    for (const workers of [2, 4, 7]) expect(nextLookMs({ ...heard, others: workers - 1 }) / workers).toBe(2_000)
    expect(nextLookMs({ ...heard, others: 99 })).toBe(15_000)
  })

  it('is at a time of its own', () => {
    const looks = [0, 0.5, 1].map((spread) => nextLookMs({ ...heard, others: 3, spread }))
    expect(looks).toEqual([6_000, 7_000, 8_000])
  })

  it('is as soon as one that lost its lock may be taken for gone', () => {
    expect(nextLookMs({ ...heard, others: 1, lockless: ['b'] })).toBe(1_000)
    expect(nextLookMs({ ...heard, others: 1, lockless: ['b'], hears: false })).toBe(1_000)
  })
})
