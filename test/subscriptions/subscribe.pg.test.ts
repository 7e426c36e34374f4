/** What a subscription is given: everything that matches, from where it should, in order, once while nothing goes wrong. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import { openLog } from '../log/support/open-log.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { dropHistory } from './support/dropped-history.ts'
import { emit as emitTo, gate, numbered, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe.each([
  { major: 18, wake: 'doorbell' },
  { major: 14, wake: 'doorbell' },
  { major: 18, wake: 'poll' },
] as const)('on Postgres $major with wake $wake', ({ major, wake }) => {
  it('two subscriptions advance independently, and after a restart each goes on at its checkpoint', async () => {
    const { ac, emit, another } = await openSubscriptions({ major, log: { wake } })
    const [fast, slow] = [recorder(), recorder(({ id }) => (id === 'second' ? blocked.passed : undefined))]
    const blocked = gate()
    ac.subscribe({ id: 'fast', handle: fast.handle })
    ac.subscribe({ id: 'slow', handle: slow.handle })
    await ac.start()
    await emit('first')
    await emit('second')
    await emit('third')
    await fast.sees('third')
    await slow.sees('second')
    const stopped = ac.stop()
    blocked.open()
    await stopped

    const next = another()
    const [fastAgain, slowAgain] = [recorder(), recorder()]
    next.subscribe({ id: 'fast', handle: fastAgain.handle })
    next.subscribe({ id: 'slow', handle: slowAgain.handle })
    await next.start()
    await emitTo(next, 'fourth')
    await fastAgain.sees('fourth')
    await slowAgain.sees('fourth')
    expect([...fast.ids, ...fastAgain.ids]).toEqual(['first', 'second', 'third', 'fourth'])
    expect([...slow.ids, ...slowAgain.ids]).toEqual(['first', 'second', 'third', 'fourth'])
  })

  it('10,000 events written while nobody ran are handled once and in order', async () => {
    const { ac, emitMany } = await openSubscriptions({ major, log: { wake } })
    await emitMany(10_000)
    const seen = recorder()
    ac.subscribe({ id: 'late', handle: seen.handle })
    expect(await ac.drain({ timeout: '50s' })).toMatchObject({ drained: true })
    expect(seen.ids).toEqual(numbered(10_000))
  })

  it('nothing is missed or repeated where catching up becomes following', async () => {
    const { ac, url, emitMany } = await openSubscriptions({ major, log: { wake } })
    await emitMany(3_000, { prefix: 'old-' })
    let writing = true
    const written: string[] = []
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      const sql = await connect(url)
      for (let n = 0; writing; n++) {
        const id = `${writer}-${n}`
        await ac.emitNow(sql, 'lamp.lit', { id, payload: {} })
        written.push(id)
      }
    })
    await eventually(() => written.length > 50)
    const seen = recorder()
    ac.subscribe({ id: 'joins', handle: seen.handle })
    await ac.start()
    await eventually(() => seen.calls.length > 3_000 + 500)
    writing = false
    await Promise.all(writers)
    await eventually(() => seen.calls.length >= 3_000 + written.length)
    expect(seen.ids.slice(0, 3_000)).toEqual(numbered(3_000, 'old-'))
    expect([...seen.ids.slice(3_000)].sort()).toEqual([...written].sort())
    expect(inOrder(seen.calls.map(({ position }) => position))).toBe(true)
  })
})

describe('where a subscription begins', () => {
  it("'head' is what was settled then: an event whose transaction was open is not missed", async () => {
    const { ac, sql, url, emit } = await openSubscriptions()
    await ac.start()
    await emit('before')
    await eventually(
      async () => (await sql.query('select frontier from aftercommit.log_state')).rows[0].frontier === '1',
    )
    const writer = await connect(url)
    await writer.query('begin')
    await ac.emit(writer, 'lamp.lit', { id: 'open', payload: {} })
    const seen = recorder()
    const handle = ac.subscribe({ id: 'new', from: 'head', handle: seen.handle })
    await eventually(() => handle.status())
    await writer.query('commit')
    await emit('after')
    await seen.sees('after')
    expect(seen.ids).toEqual(['open', 'after'])
  })

  it('a position is the last one that is not wanted', async () => {
    const { ac, emit } = await openSubscriptions()
    const { position } = await emit('first')
    await emit('second')
    const seen = recorder()
    ac.subscribe({ id: 'new', from: position, handle: seen.handle })
    await ac.drain()
    expect(seen.ids).toEqual(['second'])
  })

  it('a time is exact: what was recorded before is not handled', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    await emit('before')
    // A Date holds milliseconds, and what was recorded in the same one must lie before it.
    const { rows } = await sql.query(`select clock_timestamp() + interval '1 ms' as now`)
    await sql.query(`select pg_sleep(0.01)`)
    await emit('after')
    const seen = recorder()
    ac.subscribe({ id: 'new', from: rows[0].now, handle: seen.handle })
    await ac.drain()
    expect(seen.ids).toEqual(['after'])
  })

  it("'start' is the oldest event that is kept", async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await emitMany(30)
    await dropHistory(sql, 11n)
    const seen = recorder()
    const handle = ac.subscribe({ id: 'new', from: 'start', handle: seen.handle })
    await ac.drain()
    expect(seen.ids).toEqual(numbered(30).slice(10))
    expect(await handle.status()).toMatchObject({ status: 'active', reason: null })
  })

  it('only the first registration counts: later ones go on at the checkpoint', async () => {
    const { ac, emit, another } = await openSubscriptions()
    await emit('first')
    ac.subscribe({ id: 'kept', handle: () => {} })
    await ac.drain()
    await emit('second')
    const seen = recorder()
    const other = another()
    other.subscribe({ id: 'kept', from: 'head', handle: seen.handle })
    await ac.stop()
    await other.drain()
    expect(seen.ids).toEqual(['second'])
  })
})

describe('what a subscription is given', () => {
  it('events of its patterns and of its tenant, while its checkpoint passes the others', async () => {
    const { ac, emit } = await openSubscriptions()
    const [byType, byTenant] = [recorder(), recorder()]
    const lamps = ac.subscribe({ id: 'lamps', on: ['lamp.*'], handle: byType.handle })
    ac.subscribe({ id: 'acme', tenant: 'acme', handle: byTenant.handle })
    await ac.start()
    await emit('lit', { type: 'lamp.lit', tenant: 'acme' })
    await emit('out', { type: 'lamp.put_out', tenant: 'other' })
    await emit('door', { type: 'door.opened', tenant: 'acme' })
    const { position } = await emit('deep', { type: 'lamp.room.lit' })
    await byTenant.sees('door')
    await eventually(async () => (await lamps.status()).position === position)
    expect(byType.ids).toEqual(['lit', 'out'])
    expect(byTenant.ids).toEqual(['lit', 'door'])
  })

  it('payloads in the type of what matched', async () => {
    const events = defineEvents({
      'order.placed': z.object({ total: z.number() }),
      'order.shipped': z.object({ carrier: z.string() }),
    })
    const { ac } = await openLog({ events })
    const totals: number[] = []
    ac.subscribe({
      id: 'totals',
      on: ['order.placed'],
      handle: (event) => {
        expectTypeOf(event.payload).toEqualTypeOf<{ total: number }>()
        totals.push(event.payload.total)
      },
    })
    await ac.transaction((tx) => tx.emit('order.placed', { payload: { total: 90 } }))
    await ac.drain()
    expect(totals).toEqual([90])
  })

  it('a key that never changes between tries of one event, and differs between events and subscriptions', async () => {
    const { ac, emit } = await openSubscriptions()
    const keys: [string, string, number][] = []
    for (const id of ['one', 'two']) {
      ac.subscribe({
        id,
        retry: { maxAttempts: 3, initialDelay: '10ms' },
        handle: (event, { idempotencyKey, attempt }) => {
          keys.push([`${id} ${event.id}`, idempotencyKey, attempt])
          if (attempt < 3) throw new Error('again')
        },
      })
    }
    await emit('a')
    await emit('b')
    await ac.drain()
    const byEvent = new Map(keys.map(([what, key]) => [what, key]))
    expect(keys).toHaveLength(12)
    expect(new Set(byEvent.values()).size).toBe(4)
    for (const [what, key] of keys) expect(key).toBe(byEvent.get(what))
  })

  it('what a handler emits says what caused it', async () => {
    const { ac, emit } = await openSubscriptions()
    ac.subscribe({
      id: 'chain',
      on: ['lamp.lit'],
      transactional: true,
      handle: (event, { tx }) => tx.emit('room.bright', { id: `after-${event.id}`, payload: {} }),
    })
    await emit('cause')
    await ac.drain()
    const [, caused] = await ac.log.read()
    expect(caused).toMatchObject({ id: 'after-cause' })
    expect(caused!.metadata).toMatchObject({ causationId: 'cause', correlationId: 'cause', depth: 1 })
  })

  it('with lanes: several keys at once and never more than asked for, each key in order and one at a time', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const running = new Map<string, number>()
    let most = 0
    const handled: { key: string; position: bigint }[] = []
    ac.subscribe({
      id: 'lanes',
      concurrency: 4,
      handle: async ({ key, position }) => {
        running.set(key, (running.get(key) ?? 0) + 1)
        expect(running.get(key)).toBe(1)
        most = Math.max(most, [...running.values()].filter((n) => n > 0).length)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
        running.set(key, running.get(key)! - 1)
        handled.push({ key, position })
      },
    })
    await emitMany(500, { keys: 7 })
    await ac.drain()
    expect(most).toBe(4)
    expect(handled).toHaveLength(500)
    for (const key of running.keys()) {
      expect(inOrder(handled.filter((call) => call.key === key).map(({ position }) => position))).toBe(true)
    }
  })
})

function inOrder(positions: readonly bigint[]): boolean {
  return positions.every((position, i) => i === 0 || position > positions[i - 1]!)
}
