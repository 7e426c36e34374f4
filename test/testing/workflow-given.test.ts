import { AssertionError } from 'node:assert'
import { describe, expect, it } from 'vitest'
import { given } from '../../src/testing/workflow-given.ts'
import { defineWorkflow, after as later } from '../../src/workflows/index.ts'
import { type OrderEvent, order } from './support/order-workflow.ts'

const id = '7'
const place = { type: 'place', id, total: 90 } as const
const placed: OrderEvent = { type: 'placed', total: 90 }
const charge = { type: 'charge', total: 90 } as const
const mail = { type: 'mail' } as const
const remind = { type: 'remind', id } as const

describe('given, when, then', () => {
  it('tells what an input leads to: events, effects, timers and the state', () => {
    given(order)
      .when(place)
      .then({
        outcome: 'accepted',
        events: [placed],
        effects: [charge],
        timers: [later('1h', remind, { key: 'reminder' }), later('3h', { type: 'expire', id }, { key: 'deadline' })],
        cancelled: [],
        state: { status: 'unpaid', total: 90, reminders: 0 },
        completed: false,
      })
  })

  it('begins where the events given have led', () => {
    given(order, [placed, { type: 'paid' }])
      .when({ type: 'ship', id })
      .then({ events: [{ type: 'shipped' }], completed: true })
  })

  it('fires timers in order while time passes, also those armed on the way, and no further than asked', () => {
    const waiting = given(order).when(place).then({ outcome: 'accepted' })
    waiting.whenTimePasses('59m').then({ events: [] })
    const reminded = waiting
      .whenTimePasses('2h')
      .then({ events: [{ type: 'reminded' }, { type: 'reminded' }], effects: [{ type: 'mail' }, { type: 'mail' }] })
    expect(reminded.timers.map(({ key, due }) => [key, due.toISOString()])).toEqual([
      ['deadline', '2026-01-01T03:00:00.000Z'],
      ['reminder', '2026-01-01T03:00:00.000Z'],
    ])
    expect(reminded.now).toEqual(new Date('2026-01-01T02:00:00Z'))
    // Both are due at the same moment: the deadline was armed first, and its end cancels the reminder.
    const over = reminded.whenTimePasses('1h').then({ events: [{ type: 'expired' }], completed: true })
    expect(over.timers).toEqual([])
  })

  it('lets an effect answer, once', () => {
    const waiting = given(order)
      .when(place)
      .then({ effects: [charge] })
    const paid = waiting
      .whenDone(charge, { type: 'pay', id })
      .then({ events: [{ type: 'paid' }], cancelled: ['reminder', 'deadline'] })
    expect([paid.effects, paid.timers]).toEqual([[], []])
    expect(() => paid.whenDone(charge)).toThrow(/no such effect.*0 wait/)
    expect(waiting.effects).toEqual([charge])
  })

  it('reports an effect that ran out of tries', () => {
    const waiting = given(order)
      .when(place)
      .then({ effects: [charge] })
    waiting.whenDead(charge).then(({ events, completed }) => {
      expect([events, completed]).toEqual([[{ type: 'expired' }], true])
    })
    const reminded = waiting.whenTimePasses('1h').then({ effects: [{ type: 'mail' }] })
    reminded.whenDead({ type: 'mail' }, new Error('no such address')).then({ events: [] })
  })

  it('begins a new life without the timers of the last one', () => {
    const again = given(order, [placed, { type: 'paid' }])
      .when({ type: 'again', id, total: 5 })
      .then({ events: [{ type: 'shipped' }, { type: 'placed', total: 5 }], completed: false })
    expect(again.state).toEqual({ status: 'unpaid', total: 5, reminders: 0 })
    expect(again.timers.map(({ key }) => key)).toEqual(['reminder', 'deadline'])
  })

  it("cancels effects of earlier decisions at the end, unless effectsOnCompletion is 'run'", () => {
    const running = defineWorkflow({ ...order, effectsOnCompletion: 'run' })
    const over = given(order)
      .when(place)
      .then({ effects: [charge] })
      .whenTimePasses('1h')
      .then({ effects: [mail] })
    expect(over.effects).toEqual([charge, mail])
    expect(over.when({ type: 'expire', id }).then({ completed: true }).effects).toEqual([])
    const kept = given(running)
      .when(place)
      .then({ effects: [charge] })
      .when({ type: 'expire', id })
      .then({ completed: true })
    expect(kept.effects).toEqual([charge])
    const paid = given(order)
      .when(place)
      .then({ effects: [charge] })
      .when({ type: 'pay', id })
      .then({ events: [{ type: 'paid' }] })
    const again = paid.when({ type: 'again', id, total: 5 }).then({ completed: false })
    expect(again.effects).toEqual([{ type: 'charge', total: 5 }])
  })

  it('fails on what differs, and shows the difference', () => {
    const when = given(order).when(place)
    const wrong = catchError(() => when.then({ events: [{ type: 'placed', total: 91 }] }))
    expect(wrong).toBeInstanceOf(AssertionError)
    expect(wrong.message).toMatch(/^order: events differ[\s\S]*91/)
    expect(catchError(() => when.then({ effects: [] })).message).toMatch(/^order: effects differ/)
    expect(catchError(() => when.then({ timers: [later('1h', remind, { key: 'reminder' })] })).message).toMatch(
      /timers/,
    )
    expect(catchError(() => when.then({ state: { status: 'new' } })).message).toMatch(/^order: state differ/)
    expect(catchError(() => when.then({ rejected: 'no' })).message).toMatch(/^order: rejections differ/)
  })

  it('fails on a rejection or a late input that nobody expected', () => {
    const rejected = given(order).when({ type: 'pay', id })
    expect(catchError(() => rejected.then({ state: { status: 'new' } })).message).toMatch(/rejections differ/)
    rejected.then({ rejected: 'new cannot pay', outcome: 'rejected', events: [] })
    const late = given(order, [placed, { type: 'expired' }]).when({ type: 'pay', id })
    expect(catchError(() => late.then({ events: [] })).message).toMatch(/was over already/)
    late.then({ outcome: 'completed' })
  })

  it('gives what happened to a function, and to who awaits', async () => {
    let seen: unknown
    given(order)
      .when(place)
      .then((happened) => {
        seen = happened.outcome
      })
    expect(seen).toBe('accepted')
    // The compiler refuses to await it; where nobody asks the compiler it does no harm.
    const awaited = given(order).when(place) as unknown as PromiseLike<{ events: unknown; then?: unknown }>
    const happened = await awaited
    expect([happened.events, happened.then]).toEqual([[placed], undefined])
  })

  it('compares as it would be stored: a field that is undefined is none', () => {
    given(order)
      .when(place)
      .then({ events: [{ type: 'placed', total: 90, note: undefined }] })
  })

  it('refuses what could not be stored', () => {
    expect(() => given(order).when({ ...place, total: Number.NaN })).toThrow(/NaN/)
  })
})

function catchError(act: () => unknown): Error {
  try {
    act()
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not throw')
}
