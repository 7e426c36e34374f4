import { describe, expect, test } from 'vitest'
import { createBatcher } from '../../src/runtime/index.ts'
import { gate } from './support.ts'

describe('a batcher', () => {
  test('writes items that come during a write together with the next one', async () => {
    const writes: number[][] = []
    const open = gate()
    const add = createBatcher<number, number>({
      async write(items) {
        writes.push([...items])
        if (writes.length === 1) await open.passed
        return items.map((item) => item * 10)
      },
    })
    const first = [add(1), add(2)]
    while (writes.length === 0) await new Promise(setImmediate)
    const second = [add(3), add(4), add(5)]
    await new Promise(setImmediate)
    expect(writes).toEqual([[1, 2]])
    open.pass()
    expect(await Promise.all([...first, ...second])).toEqual([10, 20, 30, 40, 50])
    expect(writes).toEqual([
      [1, 2],
      [3, 4, 5],
    ])
  })

  test('takes as many items as it is told to, and as many writes at a time', async () => {
    let underWay = 0
    let most = 0
    const sizes: number[] = []
    const add = createBatcher<number, void>({
      take: ({ length }) => Math.min(length, 2),
      writers: 2,
      async write(items) {
        most = Math.max(most, ++underWay)
        sizes.push(items.length)
        await new Promise(setImmediate)
        underWay--
        return []
      },
    })
    await Promise.all([1, 2, 3, 4, 5, 6, 7].map(add))
    expect(sizes).toEqual([2, 2, 2, 1])
    expect(most).toBe(2)
  })

  test('tells the callers of a write that fails, and goes on with the next', async () => {
    const add = createBatcher<string, string>({
      async write([item]) {
        if (item === 'bad') throw new Error('refused')
        return [`${item} is written`]
      },
      take: () => 1,
    })
    const bad = add('bad')
    const good = add('good')
    await expect(bad).rejects.toThrow('refused')
    expect(await good).toBe('good is written')
  })
})
