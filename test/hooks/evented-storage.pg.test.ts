/** Evented storage over Postgres: rows and events are committed together, or neither. */
import { describe, expect, it } from 'vitest'
import { eventedStorage } from '../../src/hooks/index.ts'
import { poolOf } from '../log/support/pool-of.ts'
import { openHooks } from './support/open-hooks.ts'
import { orderRepository } from './support/order-repository.mjs'

async function openOrders(major: 18 | 14 = 18) {
  const { ac, url, sql } = await openHooks({ major })
  await sql.query('create table orders (id text primary key, total int, note text)')
  const repository = orderRepository(poolOf(url, 3))
  const orders = eventedStorage(repository, { entity: 'order', emit: ac.emit })
  const events = () => ac.log.read({ limit: 1_000 })
  const types = async () => (await events()).map(({ type }) => type)
  const rows = async () => (await sql.query('select from orders')).rowCount
  return { ac, sql, orders, events, types, rows }
}

describe.each([{ major: 18 }, { major: 14 }] as const)('on Postgres $major', ({ major }) => {
  it('every write emits in its own transaction, with the images before and after', async () => {
    const { orders, events } = await openOrders(major)
    expect(await orders.create({ id: '1', total: 90 })).toEqual({ id: '1', total: 90, note: null })
    await orders.update('1', { total: 80 })
    await orders.update('1', { total: 80 })
    expect(await orders.delete('1')).toBe(1)
    expect(await orders.delete('1')).toBe(0)
    const seen = await events()
    expect(seen.map(({ type, kind, key }) => [type, kind, key])).toEqual([
      ['order.created', 'created', 'order/1'],
      ['order.updated', 'updated', 'order/1'],
      ['order.deleted', 'deleted', 'order/1'],
    ])
    expect(seen[1]!.changes).toEqual({ total: { old: 90, new: 80 } })
    expect(seen[1]!.previous).toEqual({ id: '1', total: 90, note: null })
    expect(seen[2]!.previous).toEqual({ id: '1', total: 80, note: null })
  })

  it('a hundred writes in one transaction: a hundred events after commit, none after a rollback', async () => {
    const { orders, types, rows } = await openOrders(major)
    const hundred = Array.from({ length: 100 }, (_, n) => ({ id: `${n}`, total: n }))
    const undone = orders.transaction(async (within) => {
      for (const order of hundred) await within.create(order)
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect([await types(), await rows()]).toEqual([[], 0])
    await orders.transaction(async (within) => {
      for (const order of hundred) await within.create(order)
    })
    expect([(await types()).length, await rows()]).toEqual([100, 100])
  })
})

it('batches emit one event per row', async () => {
  const { orders, types, events } = await openOrders()
  await orders.createMany([1, 2, 3].map((n) => ({ id: `${n}`, total: n })))
  await orders.updateMany([
    { id: '1', total: 10 },
    { id: '2', total: 2 },
    { id: '3', total: 30 },
  ])
  expect(await orders.deleteMany(['1', '3', 'never'])).toBe(2)
  expect(await types()).toEqual([
    ...Array(3).fill('order.created'),
    ...Array(2).fill('order.updated'),
    ...Array(2).fill('order.deleted'),
  ])
  expect((await events()).slice(3).map(({ aggregateId }) => aggregateId)).toEqual(['1', '3', '1', '3'])
})

it('a savepoint that is undone takes its events with it', async () => {
  const { orders, events } = await openOrders()
  await orders.transaction(async (within, tx) => {
    await within.create({ id: '1', total: 1 })
    await tx.query('savepoint here')
    await within.create({ id: '2', total: 2 })
    await tx.query('rollback to savepoint here')
  })
  expect((await events()).map(({ aggregateId }) => aggregateId)).toEqual(['1'])
})

it('an event that is refused undoes the write', async () => {
  const { orders, rows, types } = await openOrders()
  await expect(orders.create({ id: '1', total: 1, note: 'x'.repeat(2_000_000) })).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
  })
  expect([await types(), await rows()]).toEqual([[], 0])
})

it('what it does besides writing stays as it is', async () => {
  const { orders } = await openOrders()
  await orders.create({ id: '1', total: 90 })
  expect(await orders.get('1')).toEqual({ id: '1', total: 90, note: null })
  expect(await orders.total()).toBe(90)
})
