/** Calls that never end keep nothing waiting that goes elsewhere, with or without an order, with or without a destination. */
import { describe, expect, test } from 'vitest'
import type { Reaction } from '../../src/delivery/index.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'
import { never, reacting, reaction, type SavedReactions } from './support/reacting.ts'

const CALLS = 120
/** Nine tenths of the 50 places of a process. */
const SHARE = 45

const nothing = () => {}

/** No time passes: however slow the machine is, nothing is slow and nobody waits for too long. */
const still = () => ({ clock: createTestClock() })

/** `CALLS` events that ask for the same, each with a key of its own if there is an order. */
function ask(
  reactions: SavedReactions,
  first: Reaction['run'],
  words: Parameters<typeof reaction>[2],
  isOrdered: boolean,
  keys = 'key',
) {
  return Array.from({ length: CALLS }, (_, n) =>
    reactions.react([reaction(nothing, first, { ...words, key: isOrdered ? `${keys}-${n}` : null })], never),
  )
}

const MANNERS = [
  { manner: 'in order, to a destination', words: { destination: 'https://bad.example' }, isOrdered: true },
  { manner: 'in order, without a destination', words: { name: 'bad' }, isOrdered: true },
  { manner: 'without order, to a destination', words: { destination: 'https://bad.example' }, isOrdered: false },
  { manner: 'without order or destination', words: { name: 'bad' }, isOrdered: false },
]

describe.each(MANNERS)('calls that hang, $manner', ({ words, isOrdered }) => {
  test('leave room for another, and those that cannot begin become rows', async () => {
    const { reactions, rows } = await reacting()
    let begun = 0
    const hang = () => {
      begun++
      return new Promise(nothing)
    }
    const passed = ask(reactions, hang, words, isOrdered)
    let healthy = 0
    const first = async () => void healthy++
    await reactions.react([reaction(nothing, first, { name: 'good' })], never)
    await reactions.react([reaction(nothing, first, { name: 'good', destination: 'https://good.example' })], never)
    expect(healthy).toBe(2)
    // The calls under way hold their events and have no row.
    await Promise.all(passed.slice(SHARE))
    // Known to hang by now: no other is begun.
    await Promise.all(ask(reactions, hang, words, isOrdered, 'other'))
    expect(begun).toBe(SHARE)
    expect(await rows()).toBe(2 * CALLS - SHARE)
  })

  test('and end quickly instead write nothing, however many there are', async () => {
    const { reactions, sql } = await reacting(still)
    let done = 0
    const first = async () => {
      await new Promise(setImmediate)
      done++
    }
    await Promise.all(ask(reactions, first, words, isOrdered))
    expect(done).toBe(CALLS)
    expect((await sql.query('select from aftercommit.delivery_lanes')).rowCount).toBe(0)
  })
})

test('calls in order that wait for their turn are not made once the circuit of their destination is open', async () => {
  const { one, reactions, rows } = await reacting(still)
  const destination = 'https://bad.example'
  const failures: (() => void)[] = []
  const first = () =>
    new Promise((_, reject) => {
      failures.push(() => reject(Object.assign(new Error('busy'), { transient: true })))
    })
  const passed = ask(reactions, first, { destination }, true)
  await eventually(() => failures.length === SHARE)
  for (const fail of failures.slice(0, 5)) fail()
  await eventually(() => one.lines.some((line) => line.includes('circuit open')))
  for (const fail of failures.slice(5)) fail()
  await Promise.all(passed)
  // Five slots came free before it was known.
  expect(failures.length).toBeLessThanOrEqual(SHARE + 5)
  expect(await rows()).toBe(CALLS)
})
