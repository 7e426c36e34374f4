import { expect, it } from 'vitest'
import { createWaitingKeys } from '../../src/delivery/waiting-keys.ts'
import type { Queryable } from '../../src/postgres/index.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import { reaction } from './support/reacting.ts'

interface Pair {
  readonly name: string
  readonly key: string
}

/** A database in which the given keys are held; its answers come when they are let go, and it notes what it was asked. */
function slowDatabase(held: Pair[] = []) {
  const answers: (() => void)[] = []
  const asked: (Pair[] | 'all')[] = []
  const query = (_: string, [value]: [string]) => {
    const lines = value.startsWith('[') ? (JSON.parse(value) as Pair[]) : undefined
    asked.push(lines?.map(({ name, key }) => ({ name, key })) ?? 'all')
    const isHeld = (one: Pair) => held.some(({ name, key }) => name === one.name && key === one.key)
    // Its snapshot is of now.
    const rows = lines ? lines.filter(isHeld) : held.slice(0, Number(value))
    return new Promise((resolve) => answers.push(() => resolve({ rows, rowCount: rows.length })))
  }
  const answer = async () => {
    while (answers.length === 0) await new Promise(setImmediate)
    answers.shift()!()
  }
  return { db: { query, schema: 'aftercommit' } as unknown as Queryable, answer, asked, held }
}

/** Held keys whose first look is answered. */
async function openHeld(held: Pair[] = [], mostKnown?: number) {
  const database = slowDatabase(held)
  const clock = createTestClock()
  const keys = createWaitingKeys(database.db, clock, mostKnown)
  const loaded = keys.load()
  await database.answer()
  await loaded
  database.asked.length = 0
  return { ...database, clock, keys, isHeld: (key: string) => keys.isHeld(mail, key) }
}

const mail = reaction(
  () => {},
  () => {},
)

it('a key whose row is written while others are looked for stays held', async () => {
  const { keys, answer, clock, isHeld } = await openHeld()
  // Before, during and after the look: its snapshot shows none of the rows.
  keys.hold('mail', 'again')()
  const writtenAgain = keys.hold('mail', 'again')
  const writtenBefore = keys.hold('mail', 'before')
  const looking = keys.load()
  const writtenDuring = keys.hold('mail', 'during')
  await new Promise(setImmediate)
  writtenBefore()
  writtenDuring()
  const writtenAfter = keys.hold('mail', 'after')
  await answer()
  await looking
  writtenAgain()
  const all = ['before', 'during', 'after', 'again']
  expect([...all, 'other'].filter(isHeld)).toEqual(all)
  writtenAfter()
  await clock.advance(1_000)
  const found = isHeld('before')
  await answer()
  expect(await found).toBe(false)
})

it('while all are known, only held keys are asked for, those at hand in one statement', async () => {
  const held = Array.from({ length: 50 }, (_, n) => ({ name: 'mail', key: `key-${n}` }))
  const { isHeld, asked, answer, clock, held: database } = await openHeld(held)
  expect([isHeld('key-1'), isHeld('free')]).toEqual([true, false])
  await clock.advance(1_000)
  database.splice(2, 1)
  const found = ['key-1', 'key-2', 'free'].map(isHeld)
  await answer()
  expect(await Promise.all(found)).toEqual([true, false, false])
  expect(asked).toEqual([['key-1', 'key-2'].map((key) => ({ name: 'mail', key }))])
  // One is fresh, the other known to be free.
  expect(['key-1', 'key-2'].map(isHeld)).toEqual([true, false])
})

it('with more than are to be remembered, every key is asked for once, until all can be known again', async () => {
  const held = Array.from({ length: 5 }, (_, n) => ({ name: 'mail', key: `key-${n}` }))
  const { isHeld, asked, answer, clock, held: database } = await openHeld(held, 4)
  const found = ['key-4', 'free'].map(isHeld)
  await answer()
  expect(await Promise.all(found)).toEqual([true, false])
  expect(['key-4', 'free'].map(isHeld)).toEqual([true, false])
  expect(asked).toHaveLength(1)

  database.splice(0, 3)
  await clock.advance(30_000)
  const again = isHeld('new')
  await answer()
  await answer()
  expect(await again).toBe(false)
  expect(asked.slice(1)).toEqual(['all', [{ name: 'mail', key: 'new' }]])
  expect(['key-0', 'another'].map(isHeld)).toEqual([false, false])
})

it('keys that are held here beyond what is to be remembered are forgotten, and asked for', async () => {
  const { keys, isHeld, answer, held } = await openHeld([], 4)
  for (let n = 0; n < 6; n++) {
    keys.hold('mail', `key-${n}`)()
    held.push({ name: 'mail', key: `key-${n}` })
  }
  const found = ['key-0', 'free', 'key-5'].map(isHeld)
  await answer()
  expect(await Promise.all(found)).toEqual([true, false, true])
})

it('with a step of a sequence its followers are asked for: the row of one ends as that of the next begins', async () => {
  const { keys, answer, clock, held } = await openHeld([{ name: 'mail', key: 'k' }])
  const fax = { ...mail, work: { ...mail.work, name: 'fax' } }
  await clock.advance(1_000)
  held[0] = { name: 'fax', key: 'k' }
  const found = keys.isHeld({ ...mail, followers: [fax] }, 'k')
  await answer()
  expect(await found).toBe(false)
  expect(keys.isHeld(fax, 'k')).toBe(true)
})

it('a look that fails does not keep the next from being made', async () => {
  const { keys, db, isHeld, answer, clock } = await openHeld([{ name: 'mail', key: 'k' }])
  await clock.advance(1_000)
  const { query } = db
  Object.assign(db, { query: () => Promise.reject(new Error('connection lost')) })
  await expect(isHeld('k')).rejects.toThrow('connection lost')
  Object.assign(db, { query })
  const found = keys.isHeld(mail, 'k')
  await answer()
  expect(await found).toBe(true)
})
