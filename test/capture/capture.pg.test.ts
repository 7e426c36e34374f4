import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hasSystemPostgres, type ServerKind } from '../support/database.ts'
import { capturedDatabase } from './support/captured.ts'

const ORDERS = 'create table orders (id bigint primary key, status text, total numeric(12, 2), note text)'

describe('what lands in the log', () => {
  test('created and deleted carry the row, updated also what changed and the row before', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      "insert into orders values (1, 'new', 9.5, null)",
      "update orders set status = 'paid' where id = 1",
      'update orders set status = status',
      'delete from orders',
    )
    const row = { id: 1, status: 'new', total: 9.5, note: null }
    const paid = { ...row, status: 'paid' }
    expect(await database.events()).toMatchObject([
      {
        type: 'order.created',
        aggregate_type: 'order',
        aggregate_id: '1',
        payload: row,
        changes: null,
        previous: null,
      },
      {
        type: 'order.updated',
        payload: paid,
        changes: { status: { old: 'new', new: 'paid' } },
        previous: row,
        metadata: { captured_from: 'public.orders' },
      },
      { type: 'order.deleted', payload: paid, changes: null, previous: null },
    ])
  })

  test('user, tenant, trace and actor come from the settings of the session; one transaction has one correlation id', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      'begin',
      "set local aftercommit.user_id = 'u1'",
      "set local aftercommit.tenant = 'acme'",
      "set local aftercommit.traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'",
      "set local aftercommit.actor_type = 'service'",
      "set local aftercommit.acting_for = 'u2'",
      "insert into orders values (1, 'new', 1, null)",
      "insert into orders values (2, 'new', 1, null), (3, 'new', 1, null)",
      'commit',
      "insert into orders values (4, 'new', 1, null)",
    )
    const events = await database.events()
    expect(
      events.slice(0, 3).map(({ tenant, metadata }) => ({ tenant, ...metadata, correlation_id: undefined })),
    ).toEqual(
      Array(3).fill({
        tenant: 'acme',
        captured_from: 'public.orders',
        user_id: 'u1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        actor_type: 'service',
        acting_for: 'u2',
        correlation_id: undefined,
      }),
    )
    const correlations = events.map(({ metadata }) => metadata.correlation_id)
    expect(new Set(correlations.slice(0, 3)).size).toBe(1)
    expect(correlations[3]).not.toBe(correlations[0])
    expect(events[3]).toMatchObject({ tenant: null })
    expect(events[3]!.metadata).not.toHaveProperty('user_id')
  })

  test('columns that are left out stay so when they are renamed, and under their old name when they come back', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table users (id integer primary key, name text, password_hash text)',
      "select aftercommit.capture('users', omit => '{password_hash}')",
      "insert into users values (1, 'a', 'secret')",
      'alter table users rename column password_hash to pw',
      "insert into users values (2, 'a', 'secret')",
      "insert into users values (3, 'a', 'secret'), (4, 'a', 'secret')",
      "update users set pw = 'other secret'",
      MEND,
      "insert into users values (5, 'a', 'secret')",
      'alter table users drop column pw',
      MEND,
      'alter table users add column password_hash text',
      "insert into users values (6, 'a', 'secret'), (7, 'a', 'secret')",
      MEND,
      "insert into users values (8, 'a', 'secret')",
    )
    const events = await database.events()
    expect(events.map(({ type }) => type)).toEqual(Array(8).fill('user.created'))
    expect(JSON.stringify(events)).not.toContain('secret')
  })

  test('a renamed key column, added, dropped and added again columns: the next write is right', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      "insert into orders values (1, 'new', 1, null)",
      'alter table orders rename column id to number',
      'alter table orders add column extra integer default 7',
      "insert into orders values (2, 'new', 1, null)",
      'alter table orders drop column note',
      'alter table orders add column note integer',
      "insert into orders values (3, 'new', 1, 8, 9), (4, 'new', 1, 8, 9)",
      'update orders set note = 10 where number = 3',
    )
    expect(
      (await database.events()).map(({ aggregate_id, payload, changes }) => [aggregate_id, payload, changes]),
    ).toEqual([
      ['1', { id: 1, status: 'new', total: 1, note: null }, null],
      ['2', { number: 2, status: 'new', total: 1, note: null, extra: 7 }, null],
      ['3', { number: 3, status: 'new', total: 1, extra: 8, note: 9 }, null],
      ['4', { number: 4, status: 'new', total: 1, extra: 8, note: 9 }, null],
      ['3', { number: 3, status: 'new', total: 1, extra: 8, note: 10 }, { note: { old: 9, new: 10 } }],
    ])
  })

  test('columns that are too large for the log are left out and named, and the write succeeds', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      'update aftercommit.settings set max_payload = 1000',
      "insert into orders values (1, repeat('s', 400), 1, repeat('n', 900))",
      "insert into orders values (2, 's', 1, repeat('n', 990)), (3, 's', 1, 'n')",
      "update orders set note = repeat('m', 990) where id = 3",
      "update orders set note = repeat('m', 990), status = 't'",
    )
    const events = await database.events()
    expect(
      events.map(({ aggregate_id, payload, metadata }) => [
        aggregate_id,
        Object.keys(payload).length,
        metadata.omitted,
      ]),
    ).toEqual([
      ['1', 3, ['note']],
      ['2', 3, ['note']],
      ['3', 4, undefined],
      ['3', 3, ['note']],
      ['1', 3, ['note']],
      ['2', 3, ['note']],
      ['3', 3, ['note']],
    ])
    expect(events.slice(4).map(({ changes }) => Object.keys(changes!))).toEqual([['status'], ['status'], ['status']])
  })

  test('a json column that nests deeper than the log reads is left out and named, for one row and for many', async () => {
    const database = await capturedDatabase()
    const deep = (levels: number) => `repeat('[', ${levels})::text || repeat(']', ${levels})`
    await database.run(
      'create table notes (id integer primary key, body json)',
      "select aftercommit.capture('notes')",
      `insert into notes values (1, (${deep(600)})::json)`,
      `insert into notes values (2, (${deep(600)})::json), (3, (${deep(60)})::json)`,
    )
    expect((await database.events()).map(({ metadata }) => metadata.omitted)).toEqual([['body'], ['body'], undefined])
  })

  test('an escaped NUL in json columns stays escaped, for one row and for many', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table notes (id integer primary key, body json, more json[])',
      "select aftercommit.capture('notes')",
      String.raw`insert into notes values (1, '{"a": "x\u0000y"}', null)`,
      String.raw`insert into notes values (2, '"\u0000\u0000"', array['"\u0000"'::json]), (3, '{}', null)`,
      'update notes set more = null',
      'delete from notes where id < 3',
      'delete from notes',
    )
    const events = await database.events()
    expect(events.map(({ type, aggregate_id }) => `${type} ${aggregate_id}`)).toEqual([
      ...['note.created 1', 'note.created 2', 'note.created 3', 'note.updated 2'],
      ...['note.deleted 1', 'note.deleted 2', 'note.deleted 3'],
    ])
    expect(events[0]!.payload.body).toEqual({ a: String.raw`x\u0000y` })
    expect(events[1]!.payload).toEqual({ id: 2, body: String.raw`\u0000\u0000`, more: [String.raw`\u0000`] })
  })

  test.for([
    ['integer', '7', '7'],
    ['text', "E'it''s \\\\ \"1\", %s $1 \\U0001F600'", 'it\'s \\ "1", %s $1 😀'],
    ['text', "''", '""'],
    ['uuid', "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['timestamptz', "'2026-02-28 10:00+02'", '2026-02-28T08:00:00+00:00'],
    ['bytea', "'\\x00ff'", '\\x00ff'],
    ['numeric', '1.50', '1.50'],
    ['int4range', "'[1,3)'", '[1,3)'],
    ['text[]', "'{a,b}'", '["a", "b"]'],
  ] as const)('a key of type %s: %s is aggregate id %s', async ([type, literal, id]) => {
    const database = await capturedDatabase()
    await database.run(
      `create table things (id ${type} primary key, n integer)`,
      "select aftercommit.capture('things')",
      "set timezone = 'Asia/Tokyo'",
      `insert into things values (${literal}, 1)`,
      'update things set n = 2',
    )
    expect((await database.events()).map((event) => `${event.type} ${event.aggregate_id}`)).toEqual([
      `thing.created ${id}`,
      `thing.updated ${id}`,
    ])
  })

  test('parts of a composite key are joined by commas, reversibly; a very long key is cut and gets a hash', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table things (a text, b text, primary key (b, a))',
      "select aftercommit.capture('things')",
      String.raw`insert into things values ('1,2', '3'), ('2', '3,1'), ('x\', '')`,
      "insert into things values (repeat('k', 300), 'b1')",
      "insert into things values (repeat('k', 301), 'b1')",
    )
    const ids = (await database.events()).map(({ aggregate_id }) => aggregate_id!)
    expect(ids.slice(0, 3)).toEqual([String.raw`3,1\,2`, String.raw`3\,1,2`, String.raw`,x\\`])
    expect(ids.slice(3).map((id) => id.length)).toEqual([233, 233])
    expect(ids[3]).not.toBe(ids[4])
  })

  test('keys that are exchanged by one statement end as they are in the table', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table things (id integer primary key deferrable, name text)',
      "select aftercommit.capture('things')",
      "insert into things values (1, 'a'), (2, 'b')",
      'update things set id = 3 - id',
    )
    const last = new Map((await database.events()).map((event) => [event.aggregate_id, event]))
    expect([...last.values()].map(({ type, payload }) => [type, payload])).toEqual([
      ['thing.created', { id: 1, name: 'b' }],
      ['thing.created', { id: 2, name: 'a' }],
    ])
  })
})

describe('TRUNCATE', () => {
  test('of a table, and of a partitioned table with children, is one event; of a partition too', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      'create table places (id integer primary key) partition by range (id)',
      'create table places_1 partition of places for values from (0) to (10)',
      'create table places_2 partition of places for values from (10) to (20) partition by range (id)',
      'create table places_2a partition of places_2 for values from (10) to (15)',
      "select aftercommit.capture('orders')",
      "select aftercommit.capture('places')",
      'truncate orders, places',
      'begin',
      'truncate places',
      'truncate places_1',
      'commit',
    )
    expect(
      (await database.events()).map(({ type, payload, aggregate_type }) => [type, payload, aggregate_type]),
    ).toEqual([
      ['order.truncated', { table: 'public.orders' }, null],
      ['place.truncated', { table: 'public.places' }, null],
      ['place.truncated', { table: 'public.places' }, null],
      ['place.truncated', { table: 'public.places_1' }, null],
    ])
  })

  test('is denied or ignored where the table was captured so', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders', truncate => 'deny')")
    await expect(database.run('truncate orders')).rejects.toMatchObject({ code: 'AC018' })
    await database.run("select aftercommit.capture('orders', truncate => 'ignore')", 'truncate orders')
    expect(await database.events()).toEqual([])
  })
})

describe('silence', () => {
  test('a transaction that sets aftercommit.capture to off is not captured; the next one is', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      'begin',
      "set local aftercommit.capture = 'off'",
      "insert into orders values (1, 'new', 1, null)",
      "select aftercommit.emit('order.placed', 'order', '1', '{}')",
      'truncate orders',
      'commit',
      "insert into orders values (2, 'new', 1, null)",
    )
    expect((await database.events()).map(({ type }) => type)).toEqual(['order.placed', 'order.created'])
  })

  test('what a session writes as a replica is not captured', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      "set session_replication_role = 'replica'",
      "insert into orders values (1, 'new', 1, null)",
    )
    expect(await database.events()).toEqual([])
  })
})

describe('each => row', () => {
  const WITH_OWN_TRIGGER = [
    ORDERS,
    `create function touch() returns trigger language plpgsql as $$
     begin update orders set note = 'touched' where id = new.id; return null; end $$`,
    "create trigger touch after update on orders for each row when (new.note is distinct from 'touched') execute function touch()",
  ]

  test('must be chosen for a table with row triggers of its own, and then the last event is as the row', async () => {
    const database = await capturedDatabase()
    await database.run(...WITH_OWN_TRIGGER)
    await expect(database.run("select aftercommit.capture('orders')")).rejects.toMatchObject({
      code: 'AC017',
      message: expect.stringContaining("each => 'row'"),
    })
    await database.run(
      "select aftercommit.capture('orders', each => 'row')",
      "insert into orders values (1, 'new', 1, null)",
      "update orders set status = 'paid'",
    )
    expect((await database.events()).map(({ type, payload }) => [type, payload.status, payload.note])).toEqual([
      ['order.created', 'new', null],
      ['order.updated', 'paid', null],
      ['order.updated', 'paid', 'touched'],
    ])
  })

  test('changes into statement and back without a gap or a second event', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders', each => 'row')")
    await database.run("select aftercommit.capture('orders')", "insert into orders values (1, 'new', 1, null)")
    await database.run(
      "select aftercommit.capture('orders', each => 'row')",
      "insert into orders values (2, 'new', 1, null)",
    )
    expect(await database.events()).toHaveLength(2)
  })

  test('reaches partitions, also those that come later with other column numbers', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table orders (id integer primary key, secret text, status text) partition by range (id)',
      "select aftercommit.capture('orders', each => 'row', omit => '{secret}')",
      'create table orders_1 (status text, gone text, secret text, id integer not null)',
      'alter table orders_1 drop column gone',
      'alter table orders attach partition orders_1 for values from (0) to (10)',
      "insert into orders values (1, 'hidden', 'new')",
      "insert into orders_1 (id, secret) values (2, 'hidden')",
    )
    expect(
      (await database.events()).map(({ aggregate_id, payload }) => [aggregate_id, Object.keys(payload).sort()]),
    ).toEqual([
      ['1', ['id', 'status']],
      ['2', ['id', 'status']],
    ])
  })
})

describe('refused, with the reason', () => {
  test.for([
    ['create view things as select 1 as id', 'view'],
    ['create materialized view things as select 1 as id', 'materialized'],
    ['create temporary table things (id integer primary key)', 'temporary'],
    ['create table things (id integer)', 'primary key'],
    [
      'create table things (id integer primary key) partition by range (id); create table t1 partition of things for values from (0) to (9); alter table things rename to parents; alter table t1 rename to things',
      'partition',
    ],
    [
      'create table parents (id integer primary key); create table things (primary key (id)) inherits (parents)',
      'inherits from public.parents',
    ],
    ["create table things (id integer primary key); select aftercommit.declare_stream('thing')", 'versions'],
    [
      "create table things (id integer primary key); create table thing (id integer primary key); select aftercommit.capture('thing')",
      'captured table public.thing',
    ],
  ])('%s', async ([statements, reason]) => {
    const database = await capturedDatabase()
    await database.run(statements!)
    await expect(database.run("select aftercommit.capture('things')")).rejects.toMatchObject({
      code: 'AC017',
      message: expect.stringContaining(reason!),
    })
  })

  test.for([
    ["'orders', aggregate => 'Order'", 'is no name'],
    ["'orders', aggregate => 'aftercommit.x'", 'its own'],
    ["'orders', omit => '{id}'", 'key column'],
    ["'orders', omit => '{nothing}'", 'no column nothing'],
    ["'orders', truncate => 'maybe'", 'truncate must be'],
    ["'orders', each => 'column'", 'each must be'],
    ["'aftercommit.letters'", 'belongs to the system'],
    [`'"ORDERS 1"'`, 'gives no name'],
  ])('capture(%s)', async ([call, reason]) => {
    const database = await capturedDatabase()
    await database.run(ORDERS, 'create table "ORDERS 1" (id integer primary key)')
    await expect(database.run(`select aftercommit.capture(${call})`)).rejects.toMatchObject({
      code: 'AC017',
      message: expect.stringContaining(reason!),
    })
  })

  test('the aggregate type of a captured table cannot become a stream', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders')")
    await expect(database.run("select aftercommit.declare_stream('order')")).rejects.toMatchObject({ code: 'AC017' })
  })

  test('a table with a replica identity has a key', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table things (name text not null, n integer)',
      'create unique index things_name on things (name)',
      'alter table things replica identity using index things_name',
      "select aftercommit.capture('things')",
      "insert into things values ('a', 1)",
    )
    expect((await database.events()).map(({ aggregate_id }) => aggregate_id)).toEqual(['a'])
  })
})

describe('names', () => {
  test('quoted tables and columns in other schemas, and hostile names, are captured as they are', async () => {
    const database = await capturedDatabase()
    await database.run(
      `create schema "Odd Schema"`,
      `create table "Odd Schema"."Or'd%s""ers" ("The Id" integer primary key, "a'b" text, "%s" text, "$1" text, "a,b}" text)`,
      `select aftercommit.capture('"Odd Schema"."Or''d%s""ers"', aggregate => 'order', omit => array['a,b}'])`,
      `insert into "Odd Schema"."Or'd%s""ers" values (1, 'x', 'y', 'z', 'hidden')`,
      `insert into "Odd Schema"."Or'd%s""ers" values (2, 'x', 'y', 'z', 'hidden'), (3, 'x', 'y', 'z', 'hidden')`,
      `update "Odd Schema"."Or'd%s""ers" set "%s" = 'q'`,
    )
    const events = await database.events()
    expect(events.map(({ type, aggregate_id }) => `${type} ${aggregate_id}`)).toEqual([
      ...['order.created 1', 'order.created 2', 'order.created 3'],
      ...['order.updated 1', 'order.updated 2', 'order.updated 3'],
    ])
    expect(events[3]!.payload).toEqual({ 'The Id': 1, "a'b": 'x', '%s': 'q', $1: 'z' })
    expect(JSON.stringify(events)).not.toContain('hidden')
  })

  test.for([
    ['orders', 'order'],
    ['categories', 'category'],
    ['addresses', 'address'],
    ['boxes', 'box'],
    ['status', 'status'],
    ['news_items', 'news_item'],
    ['order', 'order'],
    ['people', 'people'],
  ])('the aggregate type of %s is %s', async ([table, type]) => {
    const database = await capturedDatabase()
    await database.run(`create table "${table}" (id integer primary key)`)
    await database.run(`select aftercommit.capture('"${table}"')`, `insert into "${table}" values (1)`)
    expect((await database.events())[0]!.type).toBe(`${type}.created`)
  })

  test('objects of the caller in front of the search path change nothing', async () => {
    const database = await capturedDatabase()
    await database.run(
      ORDERS,
      'create schema evil',
      "create function evil.to_jsonb(anyelement) returns jsonb language sql as $$ select '{}'::jsonb $$",
      "create function evil.clock_timestamp() returns timestamptz language sql as $$ select 'infinity'::timestamptz $$",
      'set search_path = evil, pg_catalog, public',
      "select aftercommit.capture('orders')",
      "insert into orders values (1, 'new', 1, null)",
      "insert into orders values (2, 'new', 1, null), (3, 'new', 1, null)",
      "update orders set status = 'paid'",
    )
    expect((await database.events()).map(({ payload }) => payload.id)).toEqual([1, 2, 3, 1, 2, 3])
  })
})

describe('rights', () => {
  test('a role that may only insert writes events, and can neither read the log nor append to it', async () => {
    const database = await capturedDatabase()
    const role = `writer_${randomUUID().slice(0, 8)}`
    await database.run(
      ORDERS,
      "select aftercommit.capture('orders')",
      `create role ${role}`,
      `grant insert on orders to ${role}`,
      `set role ${role}`,
      "insert into orders values (1, 'new', 1, null)",
    )
    for (const refused of [
      'select * from aftercommit.events',
      "select aftercommit.emit('a.b', null, null, '{}')",
      "select aftercommit.capture('orders')",
      'truncate orders',
    ]) {
      await expect(database.run(refused)).rejects.toMatchObject({ code: '42501' })
    }
    await database.run('reset role')
    expect(await database.events()).toHaveLength(1)
    await database.run(`revoke all on orders from ${role}`, `drop role ${role}`)
  })
})

const servers: readonly ServerKind[] = hasSystemPostgres() ? [18, 14, 'system'] : [18, 14]

describe.each(servers)('many rows on server %s', (major) => {
  test('an update of 10,000 rows is 10,000 events in one trigger call, and none after a rollback', async () => {
    const database = await capturedDatabase(major)
    await database.run(
      ORDERS,
      "insert into orders select i, 'new', i, null from generate_series(1, 10000) i",
      "select aftercommit.capture('orders')",
      "update orders set status = 'x' where id = 1",
      'begin',
      "update orders set status = 'lost'",
      'rollback',
    )
    expect(await database.events()).toHaveLength(1)
    await database.run("update orders set status = 'paid'")
    const events = await database.events()
    expect(events).toHaveLength(10_001)
    expect(new Set(events.map(({ aggregate_id }) => aggregate_id)).size).toBe(10_000)
    expect(events[1]).toMatchObject({ type: 'order.updated', changes: { status: { new: 'paid' } } })
  })

  test('after 20 updates of one row, one of 10,000 rows compares each old row with its own new row alone', async () => {
    const database = await capturedDatabase(major)
    await database.run(
      ORDERS,
      "insert into orders select i, 'new', i, null from generate_series(1, 10000) i",
      "select aftercommit.capture('orders')",
    )
    for (let i = 0; i < 20; i++)
      await database.run(`update orders set status = 's${i}' where id between 1 and ${1 + (i % 3)}`)
    // Comparing each with each takes more than a minute; the server ends it long before.
    await database.run("set statement_timeout = '30s'", "update orders set status = 'paid'")
    const events = await database.events()
    expect(events.filter(({ changes }) => changes?.status?.new === 'paid')).toHaveLength(10_000)
  })
})

/** Puts lost or outdated triggers in place again, as `migrate` does. */
const MEND = `do $$ declare c record; begin
  for c in select * from aftercommit.captured() loop
    perform aftercommit.apply_capture(c.relation, c.aggregate_type, c.omit, c.truncate, c.each, c.unchanged);
  end loop;
end $$`
