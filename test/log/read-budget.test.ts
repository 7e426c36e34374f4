import { describe, expect, it } from 'vitest'
import { PAGE_BYTES } from '../../src/log/page-size.ts'
import { createReadBudget } from '../../src/log/read-budget.ts'

const MB = 1_000_000

function opened(bytes: number) {
  let now = 0
  const budget = createReadBudget({ monotonic: () => now }, bytes)
  const pass = (ms: number) => {
    now += ms
  }
  return { budget, pass }
}

describe('the bytes that readers of a process may hold', () => {
  it('are one page and the next for each, and the ring once', () => {
    const { budget } = opened(40 * MB)
    const readers = Array.from({ length: 16 }, () => ({}))
    for (const reader of readers) budget.pageBytes(reader)
    const pages = readers.map((reader) => budget.pageBytes(reader))
    expect(new Set(pages).size).toBe(1)
    expect(budget.ringBytes + 2 * pages.reduce((sum, page) => sum + page, 0)).toBeLessThanOrEqual(40 * MB)
    expect(budget.status()).toEqual({ bytes: 40 * MB, readers: 16, pageBytes: pages[0] })
  })

  it('do not make pages larger than one may be, and the first page of a reader is small', () => {
    const { budget } = opened(4_000 * MB)
    const reader = {}
    expect(budget.pageBytes(reader)).toBeLessThan(MB)
    expect(budget.pageBytes(reader)).toBe(PAGE_BYTES)
    expect(budget.ringBytes).toBe(16 * MB)
  })

  it('are divided anew when a reader has not read for ten minutes', () => {
    const { budget, pass } = opened(8 * MB)
    const [one, two] = [{}, {}]
    for (const reader of [one, two]) budget.pageBytes(reader)
    const shared = budget.pageBytes(one)
    pass(400_000)
    budget.pageBytes(one)
    pass(300_000)
    expect(budget.status().readers).toBe(1)
    expect(budget.pageBytes(one)).toBe(2 * shared)
  })

  it('count reads without a name as one reader', () => {
    const { budget } = opened(8 * MB)
    for (let n = 0; n < 5; n++) budget.pageBytes()
    expect(budget.status().readers).toBe(1)
  })
})
