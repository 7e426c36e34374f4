import { describe, expect, it } from 'vitest'
import { nextLookMs } from '../../src/processes/numbers.ts'

const calm = { isOneLockless: false, standsBy: false, spread: 1 }

describe('when a process looks at leases again', () => {
  it('is when its own is due, for one that is alone', () => {
    expect(nextLookMs({ ...calm, others: 0 })).toBe(5_000)
    expect(nextLookMs({ ...calm, others: 0, standsBy: true })).toBe(5_000)
  })

  it('costs all processes together the same, until each of them only renews its own', () => {
    expect(nextLookMs({ ...calm, others: 1 }) / 2).toBe(2_000)
    for (const processes of [3, 5, 100]) expect(nextLookMs({ ...calm, others: processes - 1 })).toBe(5_000)
  })

  it('is at a time of its own', () => {
    const looks = [0, 0.5, 1].map((spread) => nextLookMs({ ...calm, others: 1, spread }))
    expect(looks).toEqual([3_000, 3_500, 4_000])
  })

  it('is every second for one that stands by for the work of another', () => {
    expect(nextLookMs({ ...calm, others: 1, standsBy: true })).toBe(1_000)
  })

  it('is as soon as a process that lost its lock may be taken for gone', () => {
    expect(nextLookMs({ ...calm, others: 1, isOneLockless: true })).toBe(1_000)
  })
})
