import { expect, it } from 'vitest'
import { createHeldKeys } from '../../src/delivery/held-keys.ts'
import type { Queryable } from '../../src/postgres/index.ts'
import { createTestClock } from '../../src/runtime/index.ts'

/** A database in which nothing is held, and whose answers come when they are let go. */
function slowDatabase() {
  const answers: (() => void)[] = []
  const query = () => new Promise((resolve) => answers.push(() => resolve({ rows: [], rowCount: 0 })))
  return { db: { query, schema: 'aftercommit' } as unknown as Queryable, answer: () => answers.shift()!() }
}

it('a key whose row is written while others are looked for stays held', async () => {
  const { db, answer } = slowDatabase()
  const held = createHeldKeys(db, createTestClock())
  // Before, during and after the look: its snapshot shows none of the rows.
  const writtenBefore = held.hold('mail', 'before')
  const looking = held.load()
  const writtenDuring = held.hold('mail', 'during')
  writtenBefore()
  writtenDuring()
  const writtenAfter = held.hold('mail', 'after')
  answer()
  await looking
  expect(['before', 'during', 'after', 'other'].filter((key) => held.has('mail', key))).toEqual([
    'before',
    'during',
    'after',
  ])
  writtenAfter()
  const again = held.load()
  answer()
  await again
  expect(held.has('mail', 'before')).toBe(false)
})
