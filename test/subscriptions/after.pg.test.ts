/** `after`: a subscription that never passes the checkpoints of others. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { gate, numbered, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('a subscription that comes after a projection', () => {
  it('finds the projection updated for every event it handles', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await sql.query('create table sales (event_id text primary key)')
    ac.subscribe({
      id: 'projection:sales',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query('insert into sales values ($1)', [id])
      },
    })
    const missing: string[] = []
    const seen = recorder()
    ac.subscribe({
      id: 'saga',
      after: ['projection:sales'],
      handle: async (event, context) => {
        const { rowCount } = await sql.query('select from sales where event_id = $1', [event.id])
        if (rowCount === 0) missing.push(event.id)
        seen.handle(event, context)
      },
    })
    await ac.start()
    for (let n = 0; n < 5; n++) await emitMany(40, { prefix: `batch-${n}-` })
    await seen.sees('batch-4-40')
    expect(missing).toEqual([])
    expect(seen.calls).toHaveLength(200)
  })

  it('waits while the other one waits, and goes on with it', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const blocked = gate()
    const first = recorder(({ id }) => (id === 'event-5' ? blocked.passed : undefined))
    const second = recorder()
    ac.subscribe({ id: 'first', handle: first.handle })
    const handle = ac.subscribe({ id: 'second', after: ['first'], handle: second.handle })
    await ac.start()
    await emitMany(10)
    await first.sees('event-5')
    await second.sees('event-4')
    await eventually(async () => (await handle.status()).position === 4n)
    expect(second.ids).toEqual(numbered(4))
    blocked.open()
    await second.sees('event-10')
    expect(second.ids).toEqual(numbered(10))
  })

  it('handles nothing while one of the others has never been registered', async () => {
    const { ac, emitMany, another } = await openSubscriptions()
    const [first, second] = [recorder(), recorder()]
    ac.subscribe({ id: 'first', handle: first.handle })
    ac.subscribe({ id: 'second', after: ['first', 'elsewhere'], handle: second.handle })
    await ac.start()
    await emitMany(3)
    await first.sees('event-3')
    const other = another()
    const elsewhere = recorder(() => expect(second.ids).toEqual([]))
    other.subscribe({ id: 'elsewhere', handle: elsewhere.handle })
    await other.start()
    await second.sees('event-3')
    expect(elsewhere.ids).toEqual(numbered(3))
    expect(await ac.deadLetters.count()).toBe(0)
  })

  it('drains with the one it comes after', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const second = recorder()
    ac.subscribe({ id: 'second', after: ['first'], handle: second.handle })
    ac.subscribe({ id: 'first', handle: () => {} })
    await emitMany(300)
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(second.ids).toEqual(numbered(300))
  })
})
