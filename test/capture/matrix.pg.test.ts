/** Each way in which rows change, on each server: the events must agree with a ledger that row triggers keep by hand. */
import { describe, expect, test } from 'vitest'
import { hasSystemPostgres, type ServerKind } from '../support/database.ts'
import {
  type CapturedDatabase,
  capturedDatabase,
  eventsById,
  keepLedgerOf,
  LEDGER,
  ledgerById,
} from './support/captured.ts'

const ORDERS = 'create table orders (id bigint primary key, status text, total numeric(12, 2), note text)'
const PARTITIONED = [
  'create table orders (id bigint, region text, status text, primary key (id, region)) partition by list (region)',
  "create table orders_eu partition of orders for values in ('eu')",
  // Another order of columns than the parent's.
  'create table orders_us (status text, region text not null, id bigint not null, primary key (id, region))',
  "alter table orders attach partition orders_us for values in ('us')",
]

interface Play {
  readonly tables?: readonly string[]
  readonly statements: readonly string[]
  /** What is not on all servers. */
  readonly since?: number
  /** How many events the ledger cannot know of, such as the one of a TRUNCATE. */
  readonly beyond?: number
}

const PLAYS: Readonly<Record<string, Play>> = {
  insert: { statements: ["insert into orders values (1, 'new', 5, null)"] },
  'insert of several rows': {
    statements: ["insert into orders select i, 'new', i, 'n' from generate_series(1, 50) i"],
  },
  update: {
    statements: ["insert into orders values (1, 'new', 5, null)", "update orders set status = 'paid' where id = 1"],
  },
  'update of several rows': {
    statements: [
      "insert into orders select i, 'new', i, null from generate_series(1, 50) i",
      "update orders set status = 'paid', total = total + 1 where id > 10",
    ],
  },
  'update that changes nothing': {
    statements: [
      "insert into orders values (1, 'new', 5, null), (2, 'new', 5, null)",
      'update orders set status = status',
    ],
  },
  delete: { statements: ["insert into orders values (1, 'new', 5, null)", 'delete from orders'] },
  'delete of several rows': {
    statements: [
      "insert into orders select i, 'new', i, null from generate_series(1, 50) i",
      'delete from orders where id < 40',
    ],
  },
  'insert on conflict do update': {
    statements: [
      "insert into orders values (1, 'new', 5, null)",
      "insert into orders values (1, 'again', 6, null), (2, 'new', 5, null) on conflict (id) do update set status = excluded.status",
      "insert into orders values (1, 'third', 6, null) on conflict (id) do nothing",
    ],
  },
  merge: {
    since: 15,
    statements: [
      "insert into orders values (1, 'new', 5, null), (2, 'new', 5, null)",
      `merge into orders o using (values (1, 'paid'), (2, null), (3, 'new')) s (id, status) on o.id = s.id
         when matched and s.status is null then delete
         when matched then update set status = s.status
         when not matched then insert values (s.id, s.status, 1, null)`,
    ],
  },
  'cascade of a foreign key': {
    tables: [
      'create table customers (id bigint primary key)',
      'create table orders (id bigint primary key, customer bigint references customers on delete cascade on update cascade)',
    ],
    statements: [
      'insert into customers values (1), (2)',
      'insert into orders values (10, 1), (11, 1), (12, 2)',
      'update customers set id = 7 where id = 1',
      'delete from customers where id = 7',
    ],
  },
  'cascade within one table': {
    tables: ['create table orders (id bigint primary key, parent bigint references orders on delete cascade)'],
    statements: ['insert into orders values (1, null), (2, 1), (3, 2)', 'delete from orders where id = 1'],
  },
  'a changed primary key': {
    statements: [
      "insert into orders select i, 'new', i, null from generate_series(1, 5) i",
      'update orders set id = 100 where id = 3',
      'update orders set id = id + 1000 where id < 3',
    ],
  },
  'writes by way of a partitioned parent and of its partitions': {
    tables: PARTITIONED,
    statements: [
      "insert into orders values (1, 'eu', 'new'), (2, 'us', 'new')",
      "insert into orders_us (id, region, status) values (3, 'us', 'new')",
      "update orders set status = 'paid'",
      "update orders_us set status = 'sent'",
      'delete from orders_eu',
      'delete from orders where id = 2',
    ],
  },
  'a partition that comes later': {
    tables: PARTITIONED,
    statements: [
      "create table orders_asia partition of orders for values in ('asia')",
      "insert into orders values (4, 'asia', 'new'), (5, 'eu', 'new')",
      "update orders set status = 'paid'",
    ],
  },
  'an inherited child': {
    tables: [
      'create table orders (id bigint primary key, status text)',
      'create table orders_old (primary key (id)) inherits (orders)',
    ],
    statements: [
      "insert into orders values (1, 'new')",
      "insert into orders_old values (2, 'old'), (3, 'old')",
      "update orders set status = 'paid'",
      "update orders_old set status = 'kept'",
      'delete from orders where id > 1',
    ],
  },
  truncate: {
    beyond: 1,
    statements: [
      "insert into orders values (1, 'new', 5, null)",
      'truncate orders',
      "insert into orders values (1, 'new', 6, null)",
    ],
  },
  'a write of a nested trigger': {
    tables: [
      ORDERS,
      'create table totals (id bigint primary key, orders integer)',
      `create function count_orders() returns trigger language plpgsql as $$
       begin
         insert into orders values (new.id + 1000, 'copy', 0, null);
         return null;
       end $$`,
      'create trigger copy after insert on orders for each row when (new.id < 1000) execute function count_orders()',
    ],
    statements: ["insert into orders values (1, 'new', 5, null), (2, 'new', 5, null)"],
  },
  'writes that are rolled back': {
    statements: [
      "insert into orders values (1, 'new', 5, null)",
      'begin',
      "insert into orders values (2, 'new', 5, null)",
      'savepoint s',
      'delete from orders',
      'rollback to s',
      'rollback',
    ],
  },
}

const servers: readonly ServerKind[] = hasSystemPostgres() ? [18, 14, 'system'] : [18, 14]

describe.each(servers)('row changes on server %s', (major) => {
  test.for(Object.entries(PLAYS))('%s: events and ledger agree', async ([, play]) => {
    const database = await capturedDatabase(major)
    if ((await majorOf(database)) < (play.since ?? 14)) return
    await database.run(
      LEDGER,
      ...(play.tables ?? [ORDERS]),
      "select aftercommit.capture('orders', each => 'statement')",
    )
    await database.run(keepLedgerOf('orders'))
    for (const child of await childrenToKeep(database)) await database.run(keepLedgerOf(child))
    await database.run(...play.statements)
    // A captured id of a partitioned table is that of its composite key.
    const events = await eventsById(database)
    const ledger = await ledgerById(database)
    const simple = new Map([...events].map(([id, history]) => [id.split(',')[0]!, history]))
    expect(simple).toEqual(ledger)
    const all = await database.events()
    expect(all.length).toBe([...ledger.values()].flat().length + (play.beyond ?? 0))
  })

  test('a row that moves to another partition: deleted and created, each naming the other', async () => {
    const database = await capturedDatabase(major)
    await database.run(
      ...PARTITIONED,
      "select aftercommit.capture('orders')",
      "insert into orders values (1, 'eu', 'new'), (2, 'eu', 'new')",
      "update orders set region = 'us' where id = 1",
    )
    const moved = (await database.events()).slice(2)
    expect(
      moved.map(({ type, aggregate_id, metadata }) => [
        type,
        aggregate_id,
        metadata.key_changed_to,
        metadata.key_changed_from,
      ]),
    ).toEqual([
      ['order.deleted', '1,eu', '1,us', undefined],
      ['order.created', '1,us', undefined, '1,eu'],
    ])
  })

  test('a row whose move is refused by the other partition: deleted, and the others are updated', async () => {
    const database = await capturedDatabase(major)
    await database.run(
      ...PARTITIONED,
      'create function refuse() returns trigger language plpgsql as $$ begin return null; end $$',
      'create trigger refuse before insert on orders_us for each row execute function refuse()',
      "select aftercommit.capture('orders')",
      "insert into orders values (1, 'eu', 'new'), (2, 'eu', 'new'), (3, 'eu', 'new')",
      "update orders set status = 'paid', region = case id when 1 then 'us' else region end",
    )
    const events = (await database.events()).slice(3)
    expect(events.map(({ type, aggregate_id }) => `${type} ${aggregate_id}`).sort()).toEqual([
      'order.deleted 1,eu',
      'order.updated 2,eu',
      'order.updated 3,eu',
    ])
  })

  test('random updates over 24 column types: changes are what a diff in JavaScript says, whatever the session sets', async () => {
    const database = await capturedDatabase(major)
    const random = randomNumbers(20_26)
    await database.run(LEDGER, PINNED_LEDGER)
    for (const [n] of SESSIONS.entries()) {
      await database.run(
        `create table t${n} (id bigint primary key, ${Object.keys(TYPES)
          .map((type, i) => `c${i} ${type}`)
          .join(', ')})`,
        `select aftercommit.capture('t${n}', aggregate => 't${n}', each => 'statement')`,
        keepLedgerOf(`t${n}`),
        `insert into t${n} (id) select generate_series(1, 20)`,
      )
    }
    const count = major === 18 ? 1_000 : 200
    const updates = Array.from({ length: count }, () => {
      const columns = Object.values(TYPES).flatMap((literals, i) =>
        random() < 0.2 ? [`c${i} = ${pick(literals, random)}`] : [],
      )
      const first = 1 + Math.floor(random() * 20)
      return {
        set: ['id = id', ...columns].join(', '),
        where: `id between ${first} and ${first + Math.floor(random() * 3)}`,
      }
    })
    for (const [n, session] of SESSIONS.entries()) {
      await database.run(
        [session, ...updates.map(({ set, where }) => `update t${n} set ${set} where ${where}`), 'reset all'].join('; '),
      )
    }

    const { rows } = await database.client.query<{ old: Row; new: Row }>(
      "select old, new from ledger where operation = 'update' and old <> new order by number",
    )
    const expected = rows.map(({ old, new: now }) => diff(old, now))
    const changes = (await database.events())
      .filter(({ type }) => type.endsWith('.updated'))
      .map((event) => event.changes)
    expect(changes.length).toBeGreaterThan(4 * count)
    expect(changes).toEqual(expected)
    const [first, ...others] = SESSIONS.map((_, n) =>
      changes.slice((n * changes.length) / 4, ((n + 1) * changes.length) / 4),
    )
    for (const other of others) expect(other).toEqual(first)
  })
})

type Row = Record<string, unknown>

/** Column by column, by the JSON of each value. */
function diff(old: Row, now: Row): Record<string, { old: unknown; new: unknown }> {
  const changed = Object.keys(now).filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]))
  return Object.fromEntries(changed.map((name) => [name, { old: old[name], new: now[name] }]))
}

const SESSIONS = [
  "set timezone = 'UTC'",
  "set timezone = 'Asia/Kolkata'; set datestyle = 'German, DMY'; set intervalstyle = 'sql_standard'",
  "set timezone = 'America/St_Johns'; set bytea_output = 'escape'; set extra_float_digits = -10",
  "set timezone = '+07:30'; set datestyle = 'SQL, MDY'; set intervalstyle = 'postgres_verbose'; set lc_monetary = 'C'; set quote_all_identifiers = on",
]

/** Settings of a session reach a row trigger written by hand; the ledger must not depend on them. */
const PINNED_LEDGER = `alter function keep_ledger() set timezone = 'UTC' set datestyle = 'ISO'
  set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1 set lc_monetary = 'C'`

const TYPES: Readonly<Record<string, readonly string[]>> = {
  smallint: ['null', '1', '-32768'],
  integer: ['null', '1', '2147483647'],
  bigint: ['null', '9007199254740993', '-1'],
  numeric: ['null', '1.10', '1.1', "'NaN'", '1e30'],
  real: ['null', '0.1', '1e-30', "'Infinity'"],
  'double precision': ['null', '0.1', '0.30000000000000004', "'-Infinity'"],
  money: ['null', "'12.34'::numeric::money", "'-1'::numeric::money"],
  boolean: ['null', 'true', 'false'],
  text: ['null', "''", "'a'", '\'"quoted" \\ U0001F600\''],
  'varchar(10)': ['null', "'a'", "'b '"],
  'char(5)': ['null', "'a'", "'ab'"],
  bytea: ['null', "'\\x00ff'", "'\\x'"],
  date: ['null', "date '2026-02-28'", "'infinity'"],
  time: ['null', "time '10:00'", "time '10:00:00.000001'"],
  timetz: ['null', "timetz '10:00+02'", "timetz '10:00+03'"],
  timestamp: ['null', "timestamp '2026-02-28 10:00'", "'-infinity'"],
  timestamptz: ['null', "timestamptz '2026-02-28 10:00+00'", "timestamptz '2026-06-28 10:00:00.5+02'"],
  interval: ['null', "interval '1 day'", "interval '1 mon -3 hours'"],
  uuid: ['null', "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'"],
  json: ['null', '\'{"a": 1}\'', "'[1, null]'"],
  jsonb: ['null', '\'{"a": 1}\'', '\'"text"\'', "'null'"],
  inet: ['null', "'10.0.0.1'", "'::1'"],
  'text[]': ['null', "'{}'", "'{a,null}'"],
  tstzrange: ['null', "'empty'", "tstzrange('2026-02-28 10:00+00', null)"],
}

const pick = (from: readonly string[], random: () => number) => from[Math.floor(random() * from.length)]!

/** The same numbers in every run. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

async function majorOf({ client }: CapturedDatabase): Promise<number> {
  const { rows } = await client.query<{ major: number }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  )
  return rows[0]!.major
}

/** Children that inherit; partitions have the row triggers of their parent. */
async function childrenToKeep({ client }: CapturedDatabase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'orders'::regclass and not c.relispartition`,
  )
  return rows.map(({ name }) => name)
}
