/** A deploy that changes a filter while the old process still runs: from the registration on, the new filter counts. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { emit as emitTo, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('a new filter', () => {
  it('is in force from the moment it is registered: nothing is passed by the old one', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const [older, newer] = [recorder(), recorder()]
    ac.subscribe({ id: 'sub', on: ['lamp.lit'], handle: older.handle })
    await ac.start()
    await emit('before')
    await older.sees('before')

    const next = another()
    next.subscribe({ id: 'sub', on: ['lamp.lit', 'door.opened'], handle: newer.handle })
    await next.start()
    const doors: string[] = []
    for (let n = 0; n < 20; n++) {
      doors.push((await emit(`door-${n}`, { type: 'door.opened' })).id)
      await emit(`lamp-${n}`)
    }
    await newer.sees('lamp-19')
    expect(newer.ids.filter((id) => id.startsWith('door'))).toEqual(doors)
    const lamps = [...older.ids, ...newer.ids].filter((id) => id.startsWith('lamp'))
    expect(new Set(lamps).size).toBe(20)
  })

  it('makes the old process step down for good: it may not take the lease again', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const [older, newer, beside] = [recorder(), recorder(), recorder()]
    ac.subscribe({ id: 'sub', on: ['lamp.lit'], handle: older.handle })
    ac.subscribe({ id: 'beside', handle: beside.handle })
    await ac.start()
    await emit('before')
    await older.sees('before')
    const next = another()
    next.subscribe({ id: 'sub', on: ['door.opened'], handle: newer.handle })
    await next.start()
    await emit('door', { type: 'door.opened' })
    await newer.sees('door')
    await next.stop()
    const before = older.calls.length
    await emit('lamp')
    await emit('door-2', { type: 'door.opened' })
    await beside.sees('door-2')
    // Several rounds of the old process pass: its other subscription is paused and resumed in them.
    const handle = ac.subscriptions.get('beside')
    await handle.pause()
    await handle.resume()
    expect((await ac.subscriptions.get('sub').status()).owner).toBeNull()
    expect(older.calls.length).toBe(before)
  })

  it('that is the same in other words is not a new generation', async () => {
    const { ac, another, sql } = await openSubscriptions()
    ac.subscribe({ id: 'sub', on: ['a.b', 'c.d'], handle: () => {} })
    await ac.drain()
    const next = another()
    next.subscribe({ id: 'sub', on: ['c.d', 'a.b'], handle: () => {} })
    await next.drain()
    expect((await sql.query('select generation from aftercommit.subscriptions')).rows).toEqual([{ generation: '1' }])
  })

  it('can be rolled back: the old code registers again and its filter is in force', async () => {
    const { ac, another } = await openSubscriptions()
    ac.subscribe({ id: 'sub', on: ['lamp.lit'], handle: () => {} })
    await ac.drain()
    await ac.stop()
    const bad = another()
    bad.subscribe({ id: 'sub', on: ['door.opened'], handle: () => {} })
    await bad.start()
    const back = another()
    const seen = recorder()
    back.subscribe({ id: 'sub', on: ['lamp.lit'], handle: seen.handle })
    await back.start()
    await emitTo(back, 'lamp')
    await seen.sees('lamp')
    expect(await eventually(async () => (await back.subscriptions.get('sub').status()).on)).toEqual(['lamp.lit'])
  })
})

describe("`instances: 'single'`", () => {
  it('takes the lease at the start from whoever has it, and fences that one', async () => {
    const { ac, another, emit, sql } = await openSubscriptions()
    const [older, newer] = [recorder(), recorder()]
    ac.subscribe({ id: 'sub', handle: older.handle })
    await ac.start()
    await emit('first')
    await older.sees('first')
    const next = another()
    next.subscribe({ id: 'sub', instances: 'single', handle: newer.handle })
    await next.start()
    await eventually(
      async () => Number((await sql.query(`select term from aftercommit.subscription_partitions`)).rows[0].term) > 1,
    )
    for (let n = 0; n < 10; n++) await emit(`event-${n}`)
    await newer.sees('event-9')
    expect((await next.subscriptions.list())[0]?.owner).toEqual(expect.any(String))
    await ac.stop()
    await emitTo(next, 'last')
    await newer.sees('last')
    const ids = [...older.ids, ...newer.ids]
    expect(new Set(ids).size).toBe(12)
  })
})
