import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BisectStep, bisect } from '../../src/runtime/index.ts'

/** Attempts fail while a bad item is among others; an item that is alone is done, bad or not. */
async function play(items: readonly number[], isBad: (item: number) => boolean, stopAt = -1) {
  const done: number[] = []
  let attempts = 0
  const left = await bisect(items, async (some): Promise<BisectStep<number>> => {
    attempts++
    const at = some.indexOf(stopAt)
    if (some.length === 1 && at === 0) return { kind: 'stop', left: some }
    if (some.length > 1 && (at >= 0 || some.some(isBad))) return { kind: 'halve', items: some }
    done.push(...some)
    return { kind: 'done' }
  })
  return { done, left, attempts }
}

describe('bisect', () => {
  test('attempts every item once in a successful step, in order, whichever are bad', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 60 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 59 })),
        async (n, bad) => {
          const items = Array.from({ length: n }, (_, i) => i)
          const { done, left } = await play(items, (item) => bad.includes(item))
          expect(done).toEqual(items)
          expect(left).toEqual([])
        },
      ),
    )
  })

  test('finds one culprit among 1,000 in 21 attempts', async () => {
    const items = Array.from({ length: 1_000 }, (_, i) => i)
    const { attempts } = await play(items, (item) => item === 617)
    expect(attempts).toBeLessThanOrEqual(21)
  })

  test('returns everything from the item on at which an attempt said stop', async () => {
    const items = Array.from({ length: 20 }, (_, i) => i)
    const { done, left } = await play(items, (item) => item === 3, 11)
    expect(done).toEqual(items.slice(0, 11))
    expect(left).toEqual(items.slice(11))
  })
})
