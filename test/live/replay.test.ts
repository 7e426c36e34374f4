/** Whose question the database is asked next, when readers that catch up cost it different time. */
import { expect, it } from 'vitest'
import { compileFilter } from '../../src/live/filter.ts'
import { createReplay, type ReplayParts } from '../../src/live/replay.ts'
import { FIRST_WINDOW } from '../../src/log/index.ts'
import { createTestClock } from '../../src/runtime/index.ts'

function replaying(costOf: (after: bigint) => number) {
  const clock = createTestClock()
  const asked: bigint[] = []
  const tailer = {
    async readFiltered(after: bigint) {
      asked.push(after)
      await clock.advance(costOf(after))
      return { events: [], upTo: after + 1n, window: FIRST_WINDOW }
    },
  }
  const replay = createReplay({ tailer, clock } as unknown as ReplayParts)
  const filter = compileFilter({ types: ['*'] })
  return { asked, page: (reader: object, after: bigint) => replay.page(reader, after, 10, filter, FIRST_WINDOW) }
}

it('a reader whose pages take seconds waits for one whose pages take milliseconds', async () => {
  const { asked, page } = replaying((after) => (after >= 1_000n ? 5_000 : 10))
  const slow = Array.from({ length: 8 }, () => ({}))
  const quick = {}
  await Promise.all(slow.map((reader, at) => page(reader, BigInt(1_000 + at))))
  const again = slow.map((reader, at) => page(reader, BigInt(2_000 + at)))
  for (let after = 1n; after <= 20n; after++) await page(quick, after)
  // One slow page was perhaps under way when the quick reader came.
  expect(asked.slice(8, 29).filter((after) => after < 1_000n)).toHaveLength(20)
  await Promise.all(again)
  expect(asked).toHaveLength(36)
})

it('a slow reader is served again once others have used as much', async () => {
  const { asked, page } = replaying((after) => (after >= 1_000n ? 100 : 10))
  const [slow, quick] = [{}, {}]
  await page(slow, 1_000n)
  const waiting = page(slow, 1_001n)
  for (let after = 1n; after <= 30n; after++) await page(quick, after)
  await waiting
  expect(asked.indexOf(1_001n)).toBeLessThan(20)
})

it('readers that ask the same while it waits share the answer', async () => {
  const { asked, page } = replaying(() => 10)
  await Promise.all([page({}, 1n), page({}, 2n), page({}, 2n), page({}, 2n)])
  expect(asked).toEqual([1n, 2n])
})
