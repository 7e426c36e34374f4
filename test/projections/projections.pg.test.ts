/** States kept from events: exactly the fold of what is below the checkpoint, after anything that can happen. */
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Aftercommit, defineEvents } from '../../src/index.ts'
import { instance } from '../log/support/open-log.ts'
import { openSubscriptions, QUICK } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { createProxy } from '../support/proxy.ts'
import { applyOrder, type Order } from './support/orders.mjs'

const PROJECT_ORDERS = fileURLToPath(new URL('./support/project-orders.mjs', import.meta.url))
const ID = 'projection:orders'

describe.each([{ major: 18 }, { major: 14 }] as const)('a projection, on Postgres $major', ({ major }) => {
  it('equals the fold of the log, id by id', async () => {
    const { ac, sql } = await openSubscriptions({ major })
    const orders = ac.project({ id: ID, apply: applyOrder })
    await placeOrders(sql, 500)
    await ac.drain()
    await expectFold(ac, orders.list)
    const [first] = await ac.projections.list<Order>(ID, { limit: 1 })
    expect(await orders.get(first!.id)).toEqual(first!.state)
    expect((await orders.status()).kind).toBe('projection')
  })

  it('deletes a state with null, and keeps what JSON can say as it is', async () => {
    const { ac, emit } = await openSubscriptions({ major })
    const exact = 123456789012345678901234567890n
    const lamps = ac.project({
      id: 'projection:lamps',
      key: (event) => event.aggregateId ?? '',
      apply: (state: Record<string, unknown> | null, event) =>
        event.type === 'lamp.removed'
          ? null
          : { ...state, [event.id]: { exact, text: 'ü "quoted" \\u0041', none: null } },
    })
    await emit('a', { key: `k'"\\1` })
    await emit('b', { key: 'other' })
    await ac.drain()
    expect(await lamps.get(`k'"\\1`)).toEqual({ a: { exact, text: 'ü "quoted" \\u0041', none: null } })
    await emit('c', { key: 'other', type: 'lamp.removed' })
    await emit('d', { key: 'never', type: 'lamp.removed' })
    await ac.drain()
    expect(await lamps.get('other')).toBe(null)
    expect((await lamps.list()).map(({ id, position }) => ({ id, position }))).toEqual([{ id: `k'"\\1`, position: 1n }])
  })

  it('is listed page by page', async () => {
    const { ac, emitMany } = await openSubscriptions({ major })
    const counts = ac.project({ id: 'counts', apply: (state: number | null) => (state ?? 0) + 1 })
    await emitMany(50, { keys: 25 })
    await ac.drain()
    const first = await counts.list({ limit: 20 })
    const rest = await counts.list({ limit: 20, after: first.at(-1)!.id })
    expect([...first, ...rest].map(({ state }) => state)).toEqual(Array(25).fill(2))
    expect(new Set([...first, ...rest].map(({ id }) => id)).size).toBe(25)
    await expect(counts.list({ limit: 0 })).rejects.toThrow('limit')
  })
})

describe('a projection', () => {
  it('knows the events it is declared for', async () => {
    const { url, sql } = await openSubscriptions()
    const events = defineEvents({
      'order.paid': anything<{ amount: number }>(),
      'order.closed': anything<{ why: string }>(),
    })
    const ac = instance({ events, database: url })
    const totals = ac.project({
      id: 'totals',
      on: ['order.paid'],
      apply: (total: number | null, event) => (total ?? 0) + event.payload.amount,
    })
    await placeOrders(sql, 30)
    await ac.drain()
    const [first] = await totals.list({ limit: 1 })
    const { rows } = await sql.query(
      `select sum((payload ->> 'amount')::int)::int as total from aftercommit.events
        where type = 'order.paid' and 'order/' || aggregate_id = $1`,
      [first!.id],
    )
    expect(first!.state).toBe(rows[0].total)
  })

  it('parks an id whose event cannot be folded, goes on with the others, and catches up after redrive', async () => {
    const { ac, sql } = await openSubscriptions()
    let broken = true
    const orders = ac.project({
      id: ID,
      retry: { maxAttempts: 1 },
      apply: (state: Order | null, event) => {
        if (broken && event.id === 'event-12') throw new Error('cannot be folded')
        return applyOrder(state, event)
      },
    })
    await placeOrders(sql, 60)
    await ac.drain()
    expect((await orders.status()).deadLetters).toBe(1)
    const events = await ac.log.read({ limit: 100 })
    const parkedKey = events.find(({ id }) => id === 'event-12')!.key
    const others = events.filter(({ key }) => key !== parkedKey)
    expect(await stored(orders.list, (id) => id !== parkedKey)).toEqual(foldOf(others))
    broken = false
    await ac.deadLetters.redrive({ owner: ID })
    await eventually(async () => {
      await ac.drain()
      return (await orders.status()).parked === 0
    })
    await expectFold(ac, orders.list)
  })

  it('refuses a state that is no state, and says so in the letter', async () => {
    const { ac, emit } = await openSubscriptions()
    ac.project({ id: 'p', retry: { maxAttempts: 1 }, apply: () => undefined as unknown as null })
    await emit('a')
    await ac.drain()
    expect((await ac.deadLetters.list())[0]?.error).toMatchObject({ code: 'BAD_ANSWER' })
  })

  it('is folded anew by a reset, while it runs, and each event counts once', async () => {
    const { ac, sql } = await openSubscriptions()
    let factor = 1
    const sums = ac.project({
      id: 'sums',
      batchSize: 10,
      apply: (sum: number | null, { type, payload }) =>
        type === 'order.closed' ? null : (sum ?? 0) + factor * (payload as { amount: number }).amount,
    })
    await placeOrders(sql, 200)
    await ac.start()
    await eventually(async () => (await sums.status()).lag === 0n)
    const before = await sums.list({ limit: 1_000 })
    factor = 1_000
    await placeOrders(sql, 100, 200)
    await sums.reset({ who: 'ann' })
    await eventually(async () => (await sums.status()).lag === 0n)
    const after = new Map((await sums.list({ limit: 1_000 })).map(({ id, state }) => [id, state]))
    const expected = new Map<string, number>()
    for (const { key, type, payload } of await ac.log.read({ limit: 1_000 })) {
      if (type === 'order.closed') expected.delete(key)
      else expected.set(key, (expected.get(key) ?? 0) + 1_000 * (payload as { amount: number }).amount)
    }
    expect(before.length).toBeGreaterThan(0)
    expect(after).toEqual(expected)
    const { rows } = await sql.query(`select who, target from aftercommit.audit where what = 'projection.reset'`)
    expect(rows).toEqual([{ who: 'ann', target: 'sums' }])
  })

  it('is not reset when retention has dropped what it would need, nor when there is none', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const counts = ac.project({ id: 'counts', apply: (n: number | null) => (n ?? 0) + 1 })
    await emit('a', { key: 'k' })
    await ac.drain()
    await sql.query('update aftercommit.log_state set kept_from = 2')
    await expect(counts.reset()).rejects.toMatchObject({ code: 'HISTORY_LOST' })
    expect(await counts.get('lamp/k')).toBe(1)
    await sql.query('update aftercommit.log_state set kept_from = 0')
    await expect(ac.projections.reset('nothing')).rejects.toMatchObject({ code: 'UNKNOWN_SUBSCRIPTION' })
  })

  it('takes its states with it when it is removed', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const counts = ac.project({ id: 'counts', apply: (n: number | null) => (n ?? 0) + 1 })
    await emit('a')
    await ac.drain()
    await counts.remove()
    expect((await sql.query('select from aftercommit.projection_states')).rowCount).toBe(0)
  })

  it('is refused without a function', async () => {
    const { ac } = await openSubscriptions()
    expect(() => ac.project({ id: 'p' } as never)).toThrow('`apply`')
  })
})

describe('a crash', () => {
  beforeAll(buildPackage, 120_000)

  it('of the process, at any moment, leaves the fold of the log', async () => {
    const { ac, sql, url } = await openSubscriptions()
    await placeOrders(sql, 400)
    for (const moment of ['event-3', 'event-90', 'event-91', undefined]) {
      const child = spawnScript(PROJECT_ORDERS, moment === undefined ? [url] : [url, moment])
      await child.waitForLine(moment === undefined ? 'folded' : `folded ${moment}`)
      child.kill('SIGKILL')
      await child.exited
    }
    const orders = ac.project({ id: ID, apply: applyOrder })
    await eventually(async () => {
      await ac.drain()
      return (await orders.status()).lag === 0n
    })
    await expectFold(ac, orders.list)
    expect(await ac.deadLetters.count()).toBe(0)
  }, 120_000)

  it('of the connection in the middle of COMMIT, again and again, counts every event once', async () => {
    const { ac, sql, url } = await openSubscriptions()
    const proxy = await createProxy(url)
    const shaky = instance({ database: proxy.url })
    shaky.project({ id: ID, batchSize: 10, retry: QUICK, apply: applyOrder })
    await placeOrders(sql, 100)
    await shaky.start()
    const position = async () => (await ac.subscriptions.list())[0]?.position ?? 0n
    for (let round = 0; round < 3; round++) {
      const accepted = proxy.accepted
      proxy.cutOnCommit()
      await placeOrders(sql, 50, 100 + round * 50)
      // Somebody had to connect again: a COMMIT was cut.
      await eventually(() => proxy.accepted > accepted)
      proxy.pass()
    }
    await eventually(async () => (await position()) >= 250n, { deadline: 40_000 })
    await expectFold(ac, (page) => ac.projections.list<Order>(ID, page))
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

type List = (page?: { limit?: number; after?: string }) => Promise<{ id: string; state: unknown }[]>

/** Orders of a few payments each; some are closed, and some of those begin again. Ids are event-1, event-2, … */
async function placeOrders(sql: pg.Client, n: number, before = 0): Promise<void> {
  await sql.query(
    `select aftercommit.emit(case when n % 17 = 0 then 'order.closed' else 'order.paid' end, 'order', (n * 7 % 23)::text,
              jsonb_build_object('amount', n * n % 101), id => 'event-' || n)
       from generate_series($2::int + 1, $2::int + $1::int) n`,
    [n, before],
  )
}

async function expectFold(ac: Aftercommit, list: List): Promise<void> {
  const events = await ac.log.read({ limit: 10_000 })
  const expected = foldOf(events)
  expect(expected.size).toBeGreaterThan(5)
  expect(await stored(list)).toEqual(expected)
}

function foldOf(events: readonly { id: string; key: string; type: string; payload: unknown }[]): Map<string, Order> {
  const states = new Map<string, Order>()
  for (const event of events) {
    const next = applyOrder(states.get(event.key) ?? null, event)
    if (next === null) states.delete(event.key)
    else states.set(event.key, next)
  }
  return states
}

async function stored(list: List, wanted: (id: string) => boolean = () => true): Promise<Map<string, unknown>> {
  const states = await list({ limit: 1_000 })
  return new Map(states.filter(({ id }) => wanted(id)).map(({ id, state }) => [id, state]))
}

/** A schema that takes whatever it is given. */
function anything<T>() {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => ({ value: value as T }),
      types: undefined as unknown as { input: T; output: T },
    },
  } as const
}
