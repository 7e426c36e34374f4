import { expect, it } from 'vitest'
import { unsharedPlaces } from '../../src/delivery/shared-places.ts'
import { createSlots } from '../../src/delivery/slots.ts'
import type { Surplus } from '../../src/delivery/surplus.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import type { LeftLane } from '../../src/subscriptions/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'

/** Four slots, of which a place may have two; `got` says who had one, and who had to go without. */
function open(surplus?: Surplus) {
  const clock = createTestClock()
  const slots = createSlots(clock, unsharedPlaces(4), 2, surplus)
  const got: string[] = []
  const take = (place: string, name: string, lane?: LeftLane): void => {
    const slot = slots.take(place, lane)
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

const LANE = { kind: 'effect', name: 'mail', destination: '', tenant: '', priority: 0 }

/** Other processes with room for so many calls. */
function others(room: number): Surplus & { asked: number } {
  const surplus = {
    hasOthers: room > 0,
    asked: 0,
    async choose<W>(waiting: readonly W[]) {
      surplus.asked++
      return waiting.slice(0, room)
    },
  }
  return surplus
}

it('after 100 ms calls go to other processes, the youngest first, and as many as there are slots stay', async () => {
  const surplus = others(3)
  const { clock, got, take } = open(surplus)
  for (let n = 1; n <= 10; n++) take('a', `a${n}`, LANE)
  await clock.advance(90)
  expect(got).toEqual(['a1', 'a2'])
  await clock.advance(20)
  expect(got).toEqual(['a1', 'a2', 'not a10', 'not a9', 'not a8'])
  await clock.advance(100)
  expect(got).toEqual(['a1', 'a2', 'not a10', 'not a9', 'not a8', 'not a7'])
  await clock.advance(300)
  expect(got).toHaveLength(6)
})

it('calls that keep an order stay, and a process without others asks nothing', async () => {
  const surplus = others(3)
  const ordered = open(surplus)
  for (let n = 1; n <= 10; n++) ordered.take('a', `a${n}`)
  await ordered.clock.advance(500)
  expect([ordered.got, surplus.asked]).toEqual([['a1', 'a2'], 0])
  const alone = others(0)
  const { clock, got, take } = open(alone)
  for (let n = 1; n <= 10; n++) take('a', `a${n}`, LANE)
  await clock.advance(500)
  expect([got, alone.asked]).toEqual([['a1', 'a2'], 0])
})

it('a call that begins while other processes are asked is not given to them', async () => {
  const asked = gate()
  const { clock, slots, got, take } = open({
    hasOthers: true,
    async choose(waiting) {
      await asked.passed
      return waiting
    },
  })
  for (let n = 1; n <= 7; n++) take('a', `a${n}`, LANE)
  await clock.advance(100)
  for (let n = 0; n < 5; n++) slots.give('a')
  asked.open()
  await clock.advance(0)
  expect(got).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'])
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
