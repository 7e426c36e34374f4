import { describe, expect, it } from 'vitest'
import { UniqueKeyTakenError } from '../../src/index.ts'
import { counter, fulfilment } from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

const place = (orderId: string, key?: string) => ({ type: 'place' as const, orderId, total: 90, ...(key && { key }) })

describe('an input', () => {
  it('that is accepted writes events, effects, timers and the instance in one transaction', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    const outcome = await ac.workflows.execute(fulfilment, place('42'))
    expect(outcome).toMatchObject({ outcome: 'accepted', events: [{ type: 'placed', total: 90 }] })
    const [event, ...none] = await ac.workflows.history(fulfilment, '42')
    expect(none).toEqual([])
    expect(event).toMatchObject({
      type: 'fulfilment.placed',
      aggregateType: 'fulfilment',
      aggregateId: '42',
      version: 1,
    })
    expect(event!.payload).toMatchObject({ type: 'placed', total: 90 })
    const { rows } = await sql.query(
      `select l.kind, l.name, d.key, d.owner, d.run_at > clock_timestamp() + interval '23 hours' as later
         from aftercommit.deliveries d join aftercommit.delivery_lanes l using (lane) order by d.id`,
    )
    expect(rows).toEqual([
      { kind: 'effect', name: 'fulfilment/charge', key: '42', owner: 'fulfilment', later: false },
      { kind: 'timer', name: 'fulfilment', key: '42', owner: 'fulfilment', later: true },
    ])
    expect(await ac.workflows.query(fulfilment, '42')).toEqual({
      state: { status: 'placed', total: 90, reminders: 0 },
      version: 1,
      completed: false,
    })
  })

  it('that is rejected leaves nothing, not even an instance', async () => {
    const { open, rows } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    const outcome = await ac.workflows.execute(fulfilment, { type: 'ship', orderId: '42' })
    expect(outcome).toEqual({ outcome: 'rejected', reason: { why: 'not_paid' } })
    expect(await ac.workflows.query(fulfilment, '42')).toBeUndefined()
    for (const table of ['workflow_instances', 'events', 'deliveries', 'workflow_inputs', 'input_observations'])
      expect([table, await rows(table)]).toEqual([table, 0])
  })

  it('that comes after the end finds the instance completed, and its timers and key are gone', async () => {
    const { open, rows } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    await ac.workflows.execute(fulfilment, place('42', 'ada'))
    await ac.workflows.execute(fulfilment, { type: 'failed', orderId: '42', code: 'no_money' })
    expect(await ac.workflows.execute(fulfilment, place('42'))).toEqual({ outcome: 'completed' })
    expect(await rows('deliveries_0', 'unique_key is not null')).toBe(0)
    expect(await rows('workflow_keys')).toBe(0)
    expect((await ac.workflows.execute(fulfilment, place('43', 'ada'))).outcome).toBe('accepted')
  })

  it('with an id appends once, and the second call gets the outcome of the first', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    const first = await ac.workflows.execute(counter, { id: 'a', by: 2 }, { inputId: 'req-1' })
    await ac.workflows.execute(counter, { id: 'a', by: 3 })
    const again = await ac.workflows.execute(counter, { id: 'a', by: 2 }, { inputId: 'req-1' })
    expect(again).toEqual(first)
    expect(await ac.workflows.query(counter, 'a')).toMatchObject({ version: 2, state: { count: 5 } })
    ac.workflows.register(fulfilment)
    const ship = { type: 'ship', orderId: '1' } as const
    const rejected = await ac.workflows.execute(fulfilment, ship, { inputId: 'req-2' })
    await ac.workflows.execute(fulfilment, place('1'))
    await ac.workflows.execute(fulfilment, { type: 'paid', orderId: '1', by: 'ada' })
    expect(await ac.workflows.execute(fulfilment, ship, { inputId: 'req-2' })).toEqual(rejected)
  })
})

describe('many at once', () => {
  it.each([18, 14] as const)('50 inputs to one instance give versions 1 to 50, on PostgreSQL %i', async (major) => {
    const { open } = await openWorkflows({ major })
    const [one, other] = [open(), open()]
    for (const ac of [one, other]) ac.workflows.register(counter)
    await Promise.all(
      Array.from({ length: 50 }, (_, n) => (n % 2 ? one : other).workflows.execute(counter, { id: 'a', by: n })),
    )
    const history = await one.workflows.history(counter, 'a')
    expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1))
    const times = history.map(({ recordedAt }) => recordedAt.getTime())
    expect(times).toEqual([...times].sort((a, b) => a - b))
    for (const ac of [one, other])
      expect(await ac.workflows.query(counter, 'a')).toMatchObject({ version: 50, state: { count: 1225, events: 50 } })
    await one.workflows.execute(counter, { id: 'a' })
    expect(await other.workflows.query(counter, 'a')).toMatchObject({ state: { count: 1226 } })
  })

  it('20 starts with one unique key: one accepted, 19 conflicts that name the holder', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    ac.workflows.register(fulfilment)
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => ac.workflows.execute(fulfilment, place(String(n), 'ada'))),
    )
    const accepted = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.outcome] : []))
    const conflicts = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    expect(accepted).toEqual(['accepted'])
    expect(conflicts.every((error) => error instanceof UniqueKeyTakenError)).toBe(true)
    const { items } = await ac.workflows.list(fulfilment)
    expect(items).toHaveLength(1)
    expect(new Set(conflicts.map(({ holder }) => holder))).toEqual(new Set([items[0]!.id]))
    expect(conflicts[0]).toMatchObject({ code: 'UNIQUE_KEY_TAKEN', uniqueKey: 'ada' })
  })
})

describe("in the caller's transaction", () => {
  it('everything is committed with it, or nothing', async () => {
    const { open, sql } = await openWorkflows()
    await sql.query('create table orders (id text primary key)')
    const ac = open()
    ac.workflows.register(fulfilment)
    const run = (id: string, fails: boolean) =>
      ac.transaction(async (tx) => {
        await tx.query('insert into orders values ($1::text)', [id])
        await ac.workflows.execute(fulfilment, place(id), { tx })
        expect(await ac.workflows.execute(fulfilment, place(id), { tx })).toMatchObject({ outcome: 'rejected' })
        if (fails) throw new Error('rolled back')
      })
    await run('1', false)
    await expect(run('2', true)).rejects.toThrow('rolled back')
    expect((await sql.query('select id from orders')).rows).toEqual([{ id: '1' }])
    expect((await ac.workflows.list()).items.map(({ id }) => id)).toEqual(['1'])
    expect((await ac.workflows.execute(fulfilment, place('2'))).outcome).toBe('accepted')
  })

  it('a unique key that is taken leaves the transaction usable', async () => {
    const { open, sql } = await openWorkflows()
    await sql.query('create table orders (id text primary key)')
    const ac = open()
    ac.workflows.register(fulfilment)
    await ac.workflows.execute(fulfilment, place('1', 'ada'))
    await ac.transaction(async (tx) => {
      await expect(ac.workflows.execute(fulfilment, place('2', 'ada'), { tx })).rejects.toThrow(UniqueKeyTakenError)
      await tx.query(`insert into orders values ('2')`)
    })
    expect((await sql.query('select id from orders')).rows).toEqual([{ id: '2' }])
    expect((await ac.workflows.list()).items).toHaveLength(1)
  })

  it('a plain client of pg will do', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    await sql.query('begin')
    await ac.workflows.execute(counter, { id: 'a' }, { tx: sql })
    await sql.query('rollback')
    expect(await ac.workflows.query(counter, 'a')).toBeUndefined()
    await sql.query('begin isolation level serializable')
    await ac.workflows.execute(counter, { id: 'a' }, { tx: sql })
    await sql.query('commit')
    expect(await ac.workflows.query(counter, 'a')).toMatchObject({ version: 1 })
  })
})
