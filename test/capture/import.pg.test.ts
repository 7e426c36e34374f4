/** A table of events that existed before, appended in its order. */
import { expect, onTestFinished, test } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { runCli } from '../cli/support.ts'
import { connect } from '../support/database.ts'
import { capturedDatabase } from './support/captured.ts'

const OLD_EVENTS = `create table old_events (
  id integer primary key, event_type text, entity text, entity_id text, data jsonb, created_at timestamptz not null)`
const fill = (from: number, to: number) => `insert into old_events
  select i, 'order.placed', 'order', (i % 7)::text, jsonb_build_object('n', i), timestamptz '2020-01-01' + (i / 3) * interval '1 minute'
    from generate_series(${from}, ${to}) i order by random()`
const COLUMNS = `'{"type": "event_type", "aggregate_type": "entity", "aggregate_id": "entity_id", "payload": "data", "occurred_at": "created_at"}'`
const call = (batch = 1_000) =>
  `call aftercommit.import_events('old_events', order_by => '{created_at,id}', columns => ${COLUMNS}, batch => ${batch})`

test('rows become events in the order of their columns; a second call appends none, a later one what has come since', async () => {
  const { run, client } = await capturedDatabase()
  await run(OLD_EVENTS, fill(1, 2_500), call())
  const read = async () =>
    (
      await client.query(
        "select id, payload ->> 'n' as n, occurred_at, aggregate_id from aftercommit.events order by position",
      )
    ).rows
  const first = await read()
  expect(first.map(({ n }) => Number(n))).toEqual(Array.from({ length: 2_500 }, (_, i) => i + 1))
  expect(first[2]).toMatchObject({
    id: 'import:public.old_events:3',
    aggregate_id: '3',
    occurred_at: new Date('2020-01-01T00:01:00Z'),
  })
  await run(call())
  expect(await read()).toHaveLength(2_500)
  await run(fill(2_501, 2_600), call())
  expect(await read()).toHaveLength(2_600)
})

test('an import that is killed five times ends with the right count and order, and an empty open partition', async () => {
  const { run, client, url } = await capturedDatabase()
  await run(OLD_EVENTS, fill(1, 6_000), 'update aftercommit.settings set partition_size = 2000')
  for (let kill = 1; kill <= 5; kill++) {
    const worker = await connect(url)
    const { rows } = await worker.query<{ pid: number }>('select pg_backend_pid() as pid')
    const ended = worker.query(call(100)).catch((error: Error) => error)
    await expect
      .poll(
        async () =>
          Number((await client.query('select coalesce(max(rows), 0) as n from aftercommit.imports')).rows[0].n),
        {
          timeout: 20_000,
          interval: 5,
        },
      )
      .toBeGreaterThanOrEqual(kill * 300)
    await client.query('select pg_terminate_backend($1)', [rows[0]!.pid])
    await ended
  }
  await run(call(500), call(500))
  const { rows: found } = await client.query(
    `select count(*)::int as events, bool_and((payload ->> 'n')::int = place) as in_order,
            (select count(*)::int from aftercommit.events_open) as open
       from (select payload, row_number() over (order by position) as place from aftercommit.events) e`,
  )
  expect(found).toEqual([{ events: 6_000, in_order: true, open: 0 }])
})

test.for([
  ['create table old_events (id integer, event_type text, data jsonb)', '{id}', 'no primary key'],
  [OLD_EVENTS, '{created_at}', 'must end with its key'],
  [OLD_EVENTS, '{missing,id}', 'no column missing'],
  [
    'create table old_events (id integer primary key, event_type text, data jsonb, created_at timestamptz); insert into old_events values (1)',
    '{created_at,id}',
    'is null in some row',
  ],
  [
    "create table old_events (id integer primary key, event_type text, data jsonb); insert into old_events values (1, 'OrderPlaced')",
    '{id}',
    'no type like order.placed',
  ],
])('%s ordered by %s is refused: %s', async ([table, order, reason]) => {
  const { run, events } = await capturedDatabase()
  await run(table!)
  await expect(
    run(
      `call aftercommit.import_events('old_events', order_by => '${order}', columns => '{"type": "event_type", "payload": "data"}')`,
    ),
  ).rejects.toMatchObject({ code: 'AC017', message: expect.stringContaining(reason!) })
  expect(await events()).toEqual([])
})

test('the program finds columns by their names, and the command names subscriptions that would handle the events', async () => {
  const { run, events, url } = await capturedDatabase()
  await run(
    'create table outbox (id integer primary key, type text, payload jsonb)',
    `insert into outbox values (1, 'order.placed', '{"n": 1}'), (2, 'order.paid', '{"n": 2}')`,
  )
  const ac = createAftercommit({ database: url })
  onTestFinished(() => ac.stop())
  expect(await ac.capture.importEvents('outbox', { orderBy: ['id'] })).toEqual({ rows: 2 })
  expect((await events()).map(({ type }) => type)).toEqual(['order.placed', 'order.paid'])
  ac.subscribe({ id: 'orders', on: ['order.*'], handle: () => {} })
  await ac.drain()
  await run(`insert into outbox values (3, 'order.sent', '{}')`)
  const words = ['events', 'import', '--from', 'outbox', '--order-by', 'id', '--database', url]
  expect(await runCli(words)).toMatchObject({ code: 2, stderr: expect.stringContaining('orders') })
  expect(await runCli([...words, '--yes'])).toMatchObject({ code: 0, stdout: '1 row became events.\n' })
})
