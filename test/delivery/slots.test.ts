import { expect, it } from 'vitest'
import { unsharedPlaces } from '../../src/delivery/shared-places.ts'
import { createSlots } from '../../src/delivery/slots.ts'
import { createTestClock } from '../../src/runtime/index.ts'

/** Four slots, of which a place may have two; `got` says who had one, and who had to go without. */
function open() {
  const clock = createTestClock()
  const slots = createSlots(clock, unsharedPlaces(4), 2)
  const got: string[] = []
  const take = (place: string, name: string): void => {
    const slot = slots.take(place)
    if (slot === true) got.push(name)
    else void slot.then((isTheirs) => got.push(isTheirs ? name : `not ${name}`))
  }
  return { clock, slots, got, take }
}

it('a place has its share, and what is beyond waits for its own while others have room', async () => {
  const { clock, slots, got, take } = open()
  for (const name of ['a1', 'a2', 'a3', 'a4']) take('a', name)
  take('b', 'b1')
  expect(got).toEqual(['a1', 'a2', 'b1'])
  slots.give('b')
  await clock.advance(10)
  expect(got).toEqual(['a1', 'a2', 'b1'])
  slots.give('a')
  await clock.advance(10)
  expect(got).toEqual(['a1', 'a2', 'b1', 'a3'])
})

it('slots pass from hand to hand in the order in which they were wanted', async () => {
  const { clock, slots, got, take } = open()
  for (const place of ['a', 'b']) for (const n of [1, 2]) take(place, `${place}${n}`)
  for (const place of ['c', 'd', 'c']) take(place, place)
  for (const place of ['a', 'b', 'c']) slots.give(place)
  await clock.advance(0)
  expect(got.slice(4)).toEqual(['c', 'd', 'c'])
})

it('whoever has waited for a second goes without, and takes no share from those who come later', async () => {
  const { clock, slots, got, take } = open()
  for (const place of ['a', 'b']) for (const n of [1, 2]) take(place, `${place}${n}`)
  take('a', 'a3')
  take('c', 'c1')
  await clock.advance(900)
  expect(got).toHaveLength(4)
  take('c', 'c2')
  await clock.advance(350)
  expect(got.slice(4).sort()).toEqual(['not a3', 'not c1'])
  for (const place of ['a', 'a']) slots.give(place)
  take('a', 'a4')
  await clock.advance(0)
  expect(got.slice(6)).toEqual(['a4', 'c2'])
})

it('those that hang are told apart once they have half of all', () => {
  const { slots } = open()
  const quick = slots.slow('a')
  expect(slots.isHanging('a')).toBe(false)
  slots.slow('b')
  expect(['a', 'b', 'c'].map(slots.isHanging)).toEqual([true, true, false])
  quick()
  expect(slots.isHanging('b')).toBe(false)
})
