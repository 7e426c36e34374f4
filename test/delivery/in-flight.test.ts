import { expect, it } from 'vitest'
import { InFlight } from '../../src/delivery/in-flight.ts'
import type { Run } from '../../src/delivery/run.ts'
import type { Surplus } from '../../src/delivery/surplus.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import type { LeftLane } from '../../src/subscriptions/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'

/** Four places, of which a share may have three; `got` says who had one, and who had to go without. */
function open({ most = 4, surplus }: { most?: number; surplus?: Surplus } = {}) {
  const clock = createTestClock()
  const inFlight = new InFlight({ clock, most, surplus })
  const got: string[] = []
  const take = (share: string, name: string, lane?: LeftLane): void => {
    const place = inFlight.take(share, lane)
    if (place === true) got.push(name)
    else void place.then((isTheirs) => got.push(isTheirs ? name : `not ${name}`))
  }
  return { clock, inFlight, got, take }
}

function row(share: string): Run {
  return { share, row: { suspect: false } } as Run
}

it('a share has nine tenths of the places, and what is beyond waits while others have room', async () => {
  const { clock, inFlight, got, take } = open()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) take('a', name)
  take('b', 'b1')
  expect(got).toEqual(['a1', 'a2', 'a3', 'b1'])
  inFlight.give('b')
  await clock.advance(10)
  expect(got).toEqual(['a1', 'a2', 'a3', 'b1'])
  inFlight.give('a')
  await clock.advance(10)
  expect(got).toEqual(['a1', 'a2', 'a3', 'b1', 'a4'])
})

it('shares that wait have the next free places in turn, however many calls one of them has', async () => {
  const { clock, inFlight, got, take } = open()
  for (const share of ['x', 'y']) for (const n of [1, 2]) take(share, `${share}${n}`)
  for (const n of [1, 2, 3]) take('a', `a${n}`)
  for (const share of ['b', 'c']) take(share, share)
  for (const share of ['x', 'x', 'y', 'y']) inFlight.give(share)
  await clock.advance(0)
  expect(got.slice(4)).toEqual(['a1', 'b', 'c', 'a2'])
})

it('a call that waited for a second behind a full share goes without, and takes no place from later ones', async () => {
  const { clock, inFlight, got, take } = open()
  for (const n of [1, 2, 3, 4]) take('a', `a${n}`)
  await clock.advance(900)
  expect(got).toHaveLength(3)
  take('a', 'a5')
  await clock.advance(350)
  expect(got.slice(3)).toEqual(['not a4'])
  inFlight.give('a')
  await clock.advance(0)
  expect(got.slice(4)).toEqual(['a5'])
})

it('a call waits on where every place is busy with calls that end, and goes without once half of them are slow', async () => {
  const { clock, inFlight, got, take } = open()
  for (const share of ['a', 'b']) for (const n of [1, 2]) take(share, `${share}${n}`)
  take('c', 'c1')
  await clock.advance(5_000)
  expect(got).toHaveLength(4)
  for (const share of ['a', 'b']) inFlight.enter({ share, startedMs: clock.monotonic() })
  await clock.advance(1_300)
  expect(got.slice(4)).toEqual(['not c1'])
})

it('rows that wait are sure of a tenth of the places, and of one at least', async () => {
  const { inFlight, got, take } = open({ most: 20 })
  inFlight.waiting = [row('r'), row('r'), row('r')]
  for (const share of ['a', 'b']) for (let n = 1; n <= 10; n++) take(share, `${share}${n}`)
  expect(got).toHaveLength(18)
  for (const one of inFlight.waiting.splice(0, 2)) inFlight.begin(one)
  expect(inFlight.hasRoomForRow).toBe(false)
  inFlight.give('a')
  expect(got).toHaveLength(18)
  await Promise.resolve()
  expect(got).toHaveLength(19)
  const few = open({ most: 1 })
  few.inFlight.waiting = [row('r')]
  few.take('a', 'a1')
  expect([few.got, few.inFlight.hasRoomForRow]).toEqual([[], true])
})

it('rows of a share that could not be claimed are sure of a tenth beside its first attempts', () => {
  const begun = (isHeldBack: boolean, rows: number) => {
    const { inFlight, got, take } = open({ most: 50 })
    inFlight.areHeldBack = isHeldBack
    for (let n = 0; n < rows; n++) inFlight.begin(row('a'))
    for (let n = 0; n < 50; n++) take('a', 'a')
    return got.length
  }
  expect(begun(false, 0)).toBe(45)
  expect(begun(true, 0)).toBe(40)
  expect(begun(true, 5)).toBe(40)
  expect(begun(false, 5)).toBe(40)
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

it('after 100 ms calls go to other processes, the youngest first, and as many as there are places stay', async () => {
  const surplus = others(3)
  const { clock, got, take } = open({ surplus })
  for (let n = 1; n <= 10; n++) take('a', `a${n}`, LANE)
  await clock.advance(90)
  expect(got).toEqual(['a1', 'a2', 'a3'])
  await clock.advance(20)
  expect(got).toEqual(['a1', 'a2', 'a3', 'not a10', 'not a9', 'not a8'])
  await clock.advance(500)
  expect(got).toHaveLength(6)
})

it('calls that keep an order stay, and a process without others asks nothing', async () => {
  const surplus = others(3)
  const ordered = open({ surplus })
  for (let n = 1; n <= 10; n++) ordered.take('a', `a${n}`)
  await ordered.clock.advance(500)
  expect([ordered.got, surplus.asked]).toEqual([['a1', 'a2', 'a3'], 0])
  const alone = others(0)
  const { clock, got, take } = open({ surplus: alone })
  for (let n = 1; n <= 10; n++) take('a', `a${n}`, LANE)
  await clock.advance(500)
  expect([got, alone.asked]).toEqual([['a1', 'a2', 'a3'], 0])
})

it('a call that begins while other processes are asked is not given to them', async () => {
  const asked = gate()
  const surplus: Surplus = {
    hasOthers: true,
    async choose(waiting) {
      await asked.passed
      return waiting
    },
  }
  const { clock, inFlight, got, take } = open({ surplus })
  for (let n = 1; n <= 7; n++) take('a', `a${n}`, LANE)
  await clock.advance(100)
  for (let n = 0; n < 5; n++) inFlight.give('a')
  asked.open()
  await clock.advance(0)
  expect(got).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'])
})

it('shares whose calls take long are told apart once they hold half of the places', async () => {
  const { clock, inFlight } = open()
  const quick = { share: 'a', startedMs: clock.monotonic() }
  inFlight.enter(quick)
  await clock.advance(1_001)
  expect(inFlight.isHanging('a')).toBe(false)
  inFlight.enter({ share: 'b', startedMs: clock.monotonic() })
  expect(inFlight.isHanging('b')).toBe(false)
  await clock.advance(1_001)
  expect(['a', 'b', 'c'].map((share) => inFlight.isHanging(share))).toEqual([true, true, false])
  inFlight.leave(quick)
  expect(inFlight.isHanging('b')).toBe(false)
})
