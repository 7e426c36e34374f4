/** Rows that a captured table had before, as events; and the views over captured events. */
import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { connect } from '../support/database.ts'
import { capturedDatabase } from './support/captured.ts'

const ORDERS = 'create table orders (id bigint primary key, status text, secret text)'
const rows = (count: number) => `insert into orders select i, 'old', 'hidden' from generate_series(1, ${count}) i`

async function capturedOrders(count: number) {
  const database = await capturedDatabase()
  await database.run(ORDERS, rows(count), "select aftercommit.capture('orders', omit => '{secret}')")
  const ac = createAftercommit({ database: database.url })
  onTestFinished(() => ac.stop())
  return { ...database, ac }
}

test('call backfill() makes one event of each row, in the order of keys, and a second call makes none', async () => {
  const { run, events } = await capturedOrders(2_500)
  await run("call aftercommit.backfill('orders')", "call aftercommit.backfill('orders')")
  const seen = await events()
  expect(seen.map(({ aggregate_id }) => Number(aggregate_id))).toEqual(Array.from({ length: 2_500 }, (_, i) => i + 1))
  expect(seen[0]).toMatchObject({
    type: 'order.existing',
    payload: { id: 1, status: 'old' },
    metadata: { captured_from: 'public.orders' },
  })
  expect(JSON.stringify(seen[0])).not.toContain('hidden')
  await run("call aftercommit.backfill('orders', again => true)")
  expect(await events()).toHaveLength(5_000)
})

test('a backfill that is killed five times goes on where it was: each row once, and no event in the open partition', async () => {
  const { ac, client, url, run } = await capturedOrders(6_000)
  await run('update aftercommit.settings set partition_size = 2000')
  for (let kill = 1; kill <= 5; kill++) {
    const worker = await connect(url)
    const { rows: pids } = await worker.query<{ pid: number }>('select pg_backend_pid() as pid')
    const ended = worker.query("call aftercommit.backfill('orders', batch => 100)").catch((error: Error) => error)
    await expect
      .poll(
        async () =>
          Number((await client.query('select coalesce(max(rows), 0) as n from aftercommit.backfills')).rows[0].n),
        {
          timeout: 20_000,
          interval: 5,
        },
      )
      .toBeGreaterThanOrEqual(kill * 300)
    await client.query('select pg_terminate_backend($1)', [pids[0]!.pid])
    await ended
  }
  const progress: number[] = []
  await ac.capture.backfill('orders', { batch: 500, onProgress: (done) => progress.push(done) })
  expect(progress.length).toBeGreaterThan(1)
  const { rows: found } = await client.query(
    `select count(*)::int as events, count(distinct aggregate_id)::int as ids,
            bool_and(aggregate_id::int > coalesce(before, 0)) as in_order, (select count(*)::int from aftercommit.events_open) as open
       from (select aggregate_id, lag(aggregate_id::int) over (order by position) as before from aftercommit.events) e`,
  )
  expect(found).toEqual([{ events: 6_000, ids: 6_000, in_order: true, open: 0 }])
})

test('a change during a backfill comes after the event of its row', async () => {
  const { ac, run, events } = await capturedOrders(300)
  let changed = false
  await ac.capture.backfill('orders', {
    batch: 100,
    onProgress: () => {
      if (changed) return
      changed = true
      void run("update orders set status = 'new' where id in (1, 300)")
    },
  })
  await expect.poll(async () => (await events()).filter(({ type }) => type === 'order.updated').length).toBe(2)
  const last = new Map((await events()).map(({ aggregate_id, payload }) => [aggregate_id, payload.status]))
  expect([last.get('1'), last.get('300')]).toEqual(['new', 'new'])
})

test('rows that jsonb cannot hold, and composite keys of other types, are backfilled too', async () => {
  const { run, events, ac } = await capturedOrders(0)
  await run(
    'create table notes (at timestamptz, name text, body json, primary key (at, name))',
    String.raw`insert into notes select timestamptz '2026-01-01' + i * interval '1 hour', 'a,' || i, '"\u0000"' from generate_series(1, 25) i`,
    "select aftercommit.capture('notes')",
  )
  expect(await ac.capture.backfill('notes', { batch: 10 })).toEqual({ rows: 25 })
  const seen = await events()
  expect(new Set(seen.map(({ aggregate_id }) => aggregate_id)).size).toBe(25)
  expect(seen[0]).toMatchObject({
    aggregate_id: String.raw`2026-01-01T01:00:00+00:00,a\,1`,
    payload: { body: String.raw`\u0000` },
  })
})

test('a table that is not captured is refused, and by a role that may not read it', async () => {
  const { ac, run } = await capturedOrders(1)
  await run('create table others (id integer primary key)')
  await expect(ac.capture.backfill('others')).rejects.toMatchObject({ code: 'CAPTURE_REFUSED' })
})

test('change_images shows captured changes in the shape of Debezium', async () => {
  const { run, client } = await capturedOrders(1)
  await run(
    "call aftercommit.backfill('orders')",
    "update orders set status = 'paid'",
    'delete from orders',
    rows(1),
    'truncate orders',
  )
  const { rows: found } = await client.query(
    'select op, before, after, source, ts_ms from aftercommit.change_images order by position',
  )
  const old = { id: 1, status: 'old' }
  const paid = { id: 1, status: 'paid' }
  expect(found).toMatchObject([
    { op: 'r', before: null, after: old },
    { op: 'u', before: old, after: paid, source: { connector: 'aftercommit', table: 'public.orders' } },
    { op: 'd', before: paid, after: null },
    { op: 'c', before: null, after: old },
    { op: 't', before: null, after: null },
  ])
})

test('a role granted read sees the events of the tenant it names, none without one, and nothing else of the log', async () => {
  const { ac, run, client } = await capturedOrders(0)
  const role = `reader_${randomUUID().slice(0, 8)}`
  await ac.emitNow('a.b', { payload: {}, tenant: 'acme' })
  await ac.emitNow('a.b', { payload: {}, tenant: 'other' })
  await ac.emitNow('a.b', { payload: {} })
  await run(`create role ${role}`)
  await ac.migrate({ grantRead: [role] })
  await run(`set role ${role}`)
  const tenants = async () =>
    (await client.query('select tenant from aftercommit.tenant_events')).rows.map(({ tenant }) => tenant)
  expect(await tenants()).toEqual([])
  await run("set aftercommit.tenant = ''")
  expect(await tenants()).toEqual([])
  await run("set aftercommit.tenant = 'acme'")
  expect(await tenants()).toEqual(['acme'])
  for (const hidden of ['events', 'dead_letters', 'change_images', 'captured_tables']) {
    await expect(run(`select * from aftercommit.${hidden}`)).rejects.toMatchObject({ code: '42501' })
  }
  await run('reset role', `drop owned by ${role}`, `drop role ${role}`)
})
