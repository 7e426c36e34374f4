/**
 * Least rights, with real roles: who may emit can do nothing else, who runs a process can read, and neither can change
 * history. The owner of the schema is no superuser either.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { mails, openWorker, work } from '../delivery/support/open-delivering.ts'
import { impatientClock } from '../log/support/hurried-clock.ts'
import { openFollowing } from '../log/support/open-following.ts'
import { follow, instance, SERVERS } from '../log/support/open-log.ts'
import { poolOf } from '../log/support/pool-of.ts'
import { connect, serverUrl, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

const lamp = { payload: { watts: 60 } }

describe.each(SERVERS)('rights on Postgres $major', ({ major }) => {
  it('to emit are rights to append and nothing else', async () => {
    const { emitter, admin } = await installWithRoles(major)
    await admin.query(`select aftercommit.declare_stream('lamp')`)
    const ac = instance({ database: emitter.url })
    const aggregate = { type: 'lamp', id: '1' }
    await ac.transaction(async (tx) => {
      await tx.emit('lamp.lit', { ...lamp, aggregate, expectedVersion: 0 })
      await tx.emit([
        { type: 'lamp.lit', ...lamp, id: 'lamp-1' },
        { type: 'lamp.lit', ...lamp, tenant: 'hall' },
      ])
    })
    await ac.emitNow(poolOf(emitter.url, 1), 'lamp.lit', lamp)
    const sql = await connect(emitter.url)
    await sql.query(`select aftercommit.emit('lamp.lit', 'lamp', '1', '{}')`)
    expect((await admin.query('select from aftercommit.events')).rowCount).toBe(5)

    for (const table of ['events', 'event_ids', 'streams', 'settings', 'log_state', 'epochs', 'idle_marks', 'audit']) {
      await expectRefused(sql, `select * from aftercommit.${table}`)
    }
    await expectRefused(sql, `select * from aftercommit.positions`)
    await expectRefused(sql, `select aftercommit.check_log()`)
    await expectRefused(sql, `select aftercommit.publish_frontier(1, 999, 999)`)
    await expectRefused(sql, `select aftercommit.split_partitions()`)
    await expectRefused(sql, `select aftercommit.declare_stream('order')`)
    await expectNoChange(sql, admin)
  })

  it('to emit are no rights to speak for the library: caches are told of some keys, and of nothing else', async () => {
    const { emitter, runner, admin } = await installWithRoles(major)
    const sql = await connect(emitter.url)
    const everything = `'{"action": "invalidate", "keys": [], "patterns": ["*"]}'::jsonb`
    for (const statement of [
      `select aftercommit.emit('aftercommit.cache.invalidated', null, null, ${everything})`,
      `select aftercommit.append('x', 'aftercommit.cache.invalidated', null, null, ${everything}, '{}')`,
      `select aftercommit.append('x', 'aftercommit.made_up', null, null, '{}', '{}', null, '{"chosen": true}')`,
      `select aftercommit.append_many('{x}', '{aftercommit.cache.invalidated}', null, null, '[{}]', '[{}]')`,
    ]) {
      await expect(sql.query(statement), statement).rejects.toMatchObject({ code: 'AC003' })
    }
    await expectRefused(sql, `select aftercommit.append_own('x', 'aftercommit.cache.invalidated', ${everything}, '{}')`)
    const ac = instance({ database: emitter.url })
    await expect(ac.emitNow('aftercommit.cache.invalidated', lamp)).rejects.toMatchObject({ code: 'BAD_EVENT_NAME' })
    for (const keys of [
      `'{}'`,
      'null',
      `array_fill('k'::text, array[1001])`,
      `array[repeat('k', 1001)]`,
      `'{a,null}'`,
    ]) {
      await expect(sql.query(`select aftercommit.invalidate(${keys})`), keys).rejects.toMatchObject({ code: 'AC004' })
    }
    await sql.query(`select aftercommit.invalidate('{product:7,product:8}')`)

    const internal = await connect(runner.url)
    const own = (type: string) => internal.query(`select aftercommit.append_own('own', '${type}', '{}', '{}')`)
    await expect(own('lamp.lit')).rejects.toMatchObject({ code: 'AC003' })
    expect((await own('aftercommit.made_up')).rows).toEqual((await own('aftercommit.made_up')).rows)
    const { rows } = await admin.query('select type, payload from aftercommit.events order by position')
    expect(rows).toEqual([
      {
        type: 'aftercommit.cache.invalidated',
        payload: { action: 'invalidate', keys: ['product:7', 'product:8'], patterns: [] },
      },
      { type: 'aftercommit.made_up', payload: {} },
    ])
  })

  it('to run cannot end the log, erase what was recorded, or see sessions of others', async () => {
    const { runner, url } = await installWithRoles(major)
    const sql = await connect(runner.url)
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 3)`)
    const publish = async (frontier: string, witness: string) =>
      (await sql.query(`select aftercommit.publish_frontier(1, ${frontier}, ${witness}) as published`)).rows[0]
        .published
    expect(await publish('9223372036854775807', '1')).toBe(false)
    expect(await publish('4', '1')).toBe(false)
    expect(await publish('2', '3')).toBe(true)
    expect(await publish('3', '9223372036854775807')).toBe(true)
    const { rows } = await sql.query('select o_epoch, o_frontier, o_began, o_problem from aftercommit.check_log()')
    expect(rows).toEqual([{ o_epoch: 1, o_frontier: '3', o_began: null, o_problem: null }])
    for (const keep of [`'-10 years'`, `'0'`, 'null']) {
      await expect(sql.query(`select aftercommit.keep_run_days(${keep})`)).rejects.toMatchObject({ code: 'AC004' })
    }

    const seesSessions = async () =>
      (await sql.query(`select pg_has_role('pg_read_all_stats', 'usage') as sees`)).rows[0].sees as boolean
    const superuser = instance({ database: url })
    await superuser.migrate({ grantRun: [runner.name] })
    expect(await seesSessions()).toBe(false)
    await superuser.migrate({ grantMonitor: [runner.name] })
    expect(await seesSessions()).toBe(true)
  })

  it('to run are rights to read, to be rung and to say how far the log is final', async () => {
    const { runner, admin } = await installWithRoles(major)
    const reader = await openFollowing({ database: runner.url })
    await reader.armed()
    expect((await admin.query('select from aftercommit.idle_marks')).rowCount).toBe(1)
    const ac = instance({ database: runner.url })
    const emit = (id: string) => ac.transaction((tx) => tx.emit('lamp.lit', { ...lamp, id }))
    expect(await reader.isRung(async () => (await emit(randomUUID())).position)).toBe(true)
    const { position } = await emit('lamp-1')
    await follow(ac.log).sees('lamp-1')
    expect(await ac.log.status()).toMatchObject({ head: position, problem: null })
    await eventually(async () => {
      const { rows } = await admin.query('select frontier from aftercommit.log_state')
      return rows[0].frontier === String(position)
    })
    expect((await admin.query('select from aftercommit.processes')).rowCount).toBe(2)
    expect(await ac.upkeep()).toMatchObject({ dropped: [] })
    await expectNoChange(await connect(runner.url), admin)
  })

  it('to run are enough to do deliveries and to operate them, which who may emit cannot even see', async () => {
    const { runner, emitter, admin } = await installWithRoles(major)
    const worker = await openWorker(runner.url)
    const done: unknown[] = []
    worker.register(work(({ payload }) => void done.push(payload)))
    await worker.add(worker.database, [
      ...mails(1, { payload: 'mail', destination: 'smtp' }),
      ...mails(3, { name: 'fax' }),
    ])
    await eventually(() => done.length === 1)

    const { deliveries, metrics, doctor } = instance({ database: runner.url })
    const [first, second] = await deliveries.list({ name: 'fax' })
    await Promise.all([
      deliveries.pause({ destination: 'smtp' }),
      deliveries.pause({ kind: 'effect', name: 'mail' }, { who: 'ada' }),
    ])
    expect(await deliveries.resume({ kind: 'effect', name: 'mail' })).toHaveLength(1)
    expect(await deliveries.resume({ destination: 'smtp' })).toHaveLength(1)
    await admin.query(`update aftercommit.deliveries set run_at = now() + interval '1 hour' where id = $1`, [first!.id])
    expect(await deliveries.retry(first!.id)).toBe(1)
    expect(await deliveries.cancel(second!.id)).toBe(1)
    expect((await deliveries.show(first!.id))?.state).toBe('waiting')
    expect(await deliveries.count()).toMatchObject({ waiting: 2 })
    expect(await deliveries.orphans()).toMatchObject([{ name: 'fax', count: 2 }])
    expect(await deliveries.names()).toMatchObject([{ name: 'fax' }, { name: 'mail', workers: 1 }])
    expect(await deliveries.destinations()).toMatchObject([{ destination: 'smtp', paused: false }])
    expect(await deliveries.pauses()).toEqual([])
    expect(await metrics()).toContain('aftercommit_deliveries{state="waiting"} 2')
    expect(await doctor()).toContainEqual(expect.objectContaining({ check: 'deliveries', level: 'warning' }))

    const sql = await connect(emitter.url)
    for (const table of DELIVERY_TABLES) await expectRefused(sql, `select * from aftercommit.${table}`)
    await expectRefused(sql, `select aftercommit.add_deliveries('[]')`)
    await expectRefused(sql, `select aftercommit.rotate_deliveries(0)`)
    const running = await connect(runner.url)
    for (const table of DELIVERY_TABLES) await expectRefused(running, `truncate aftercommit.${table}`)
    await expectRefused(running, `insert into aftercommit.delivery_lanes (kind, name) values ('effect', 'mine')`)
    await expectRefused(running, 'delete from aftercommit.delivery_state')
    await expectRefused(running, `select setval('aftercommit.delivery_ids', 1)`)
  })

  it('to run are enough for observers, from their first version to a dead letter and its alert', async () => {
    const { runner, emitter, admin } = await installWithRoles(major)
    const ac = instance({ database: runner.url })
    ac.observers.action('print', (event) => {
      if (event.id === 'bad') throw new Error('no paper')
    })
    const actions = [{ type: 'custom', handler: 'print' }]
    await ac.observers.add({ name: 'print', on: 'lamp.lit', retry: { maxAttempts: 1 }, actions })
    await ac.start()
    await ac.transaction((tx) => tx.emit(['good', 'bad'].map((id) => ({ type: 'lamp.lit', id, ...lamp }))))
    await eventually(async () => {
      const { observers } = await ac.observers.explain('bad')
      return observers[0]!.actions[0]!.state === 'dead'
    })
    expect(await ac.observers.test({ since: '1h' })).toMatchObject({ ok: true, events: 2 })
    // The run of the one that is fine may be written down after the other.
    await eventually(async () =>
      expect(await ac.observers.status()).toMatchObject([{ name: 'print', runs: { success: 1, failure: 1 } }]),
    )
    const sql = await connect(runner.url)
    await sql.query(`select aftercommit.keep_run_days('7 days')`)
    expect((await sql.query('select from aftercommit.observer_runs')).rowCount).toBe(2)
    await sql.query(`insert into aftercommit.observer_alerts (observer, sent_at) values ('print', now())`)
    await expectRefused(sql, `update aftercommit.runs set status = 'success'`)
    await expectRefused(sql, `delete from aftercommit.observer_versions`)
    await expectRefused(sql, `update aftercommit.observer_actions set start_position = 0`)
    const outsider = await connect(emitter.url)
    for (const table of ['runs', 'observer_runs', 'observer_versions', 'observer_actions', 'observer_alerts']) {
      await expectRefused(outsider, `select * from aftercommit.${table}`)
    }
    await expectRefused(outsider, `select aftercommit.keep_run_days('7 days')`)
    expect((await admin.query('select from aftercommit.runs')).rowCount).toBe(2)
  })

  it('cannot be widened by a search_path full of traps', async () => {
    const { emitter, admin, database } = await installWithRoles(major)
    await admin.query(`grant create, temporary on database ${database} to ${emitter.name}`)
    const sql = await connect(emitter.url)
    // Open to the owner as well, who would pass over a schema without this right.
    await sql.query('create schema evil; grant usage on schema evil to public')
    for (const trap of TRAPS) await sql.query(trap)
    for (const table of ['events', 'event_ids', 'streams', 'stream_types', 'settings', 'idle_marks']) {
      await sql.query(`create temporary table ${table} (position bigint, id text, version bigint)`)
    }
    await sql.query('set search_path = evil, pg_temp, pg_catalog')
    // The trap is open: an unguarded call falls into it.
    await expect(sql.query(`select length('x')`)).rejects.toThrow('trapped')

    await sql.query(`select aftercommit.emit('lamp.lit', 'lamp', '1', '{"watts": 60}', id => 'lamp-1')`)
    const ac = instance({ database: emitter.url })
    await ac.emitNow(sql, 'lamp.lit', { ...lamp, aggregate: { type: 'lamp', id: '1' }, id: 'lamp-2' })
    await ac.emitNow(sql, [
      { type: 'lamp.lit', ...lamp },
      { type: 'lamp.lit', ...lamp, aggregate: { type: 'lamp', id: '1' }, id: 'lamp-1' },
    ])
    const { rows } = await admin.query('select position::int, payload from aftercommit.events order by position')
    expect(rows).toEqual([1, 2, 3].map((position) => ({ position, payload: { watts: 60 } })))
  })

  it('that are missing are named', async () => {
    const { stranger } = await installWithRoles(major)
    const ac = instance({ database: stranger.url })
    await expect(ac.transaction((tx) => tx.emit('lamp.lit', lamp))).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
      message: expect.stringContaining('--grant-emit'),
    })
  })
})

it.each(['Shop', 'my "log"', `O'Brien's 100 %`, 'with.dot and \\', 'order'])(
  'a schema called %s works from end to end',
  async (schema) => {
    const { url } = await testDatabase()
    const ac = instance({ database: url, schema })
    await ac.migrate()
    const reader = await openFollowing({ database: url, schema, clock: impatientClock(20) })
    await reader.armed()
    const sql = await connect(url)
    const quoted = `"${schema.replaceAll('"', '""')}"`
    await sql.query(`select ${quoted}.declare_stream('lamp')`)
    await ac.transaction((tx) =>
      tx.emit('lamp.lit', { ...lamp, aggregate: { type: 'lamp', id: '1' }, expectedVersion: 0 }),
    )
    await sql.query(`select ${quoted}.emit('lamp.lit', 'lamp', '1', '{}', id => 'lamp-2')`)
    await reader.reaches(2n)
    const isRung = await reader.isRung(
      async () => (await ac.transaction((tx) => tx.emit('lamp.lit', { ...lamp }))).position,
    )
    expect(isRung).toBe(true)
    expect((await ac.log.stream({ type: 'lamp', id: '1' })).map(({ version }) => version)).toEqual([1, 2])
    expect(await ac.log.status()).toMatchObject({ epoch: 1, problem: null })

    await sql.query(`update ${quoted}.settings set partition_size = 1000000, retention = '1 day'`)
    await sql.query(`select setval('${quoted.replaceAll("'", "''")}.positions', 1500000)`)
    const { added, postponed } = await ac.upkeep()
    expect([added[0], postponed]).toEqual(['events_000002000000', []])
  },
)

const DELIVERY_TABLES = [
  'deliveries',
  'delivery_lanes',
  'delivery_state',
  'delivery_workers',
  'delivery_pauses',
  'destinations',
]

interface TestRole {
  readonly name: string
  readonly url: string
}

/** A database with an owner of its own, who installs and gives rights; the administrator only looks. */
async function installWithRoles(major: 18 | 14) {
  const { url, name: database } = await testDatabase({ major })
  const admin = await connect(url)
  const cluster = await connect(serverUrl(major))
  const role = async (kind: string): Promise<TestRole> => {
    const name = `ac_${kind}_${randomBytes(4).toString('hex')}`
    await cluster.query(`create role ${name} login password '${name}'`)
    return { name, url: url.replace(/\/\/[^/@]*@/, `//${name}:${name}@`) }
  }
  const [owner, emitter, runner, stranger] = [
    await role('owner'),
    await role('emit'),
    await role('run'),
    await role('none'),
  ]
  await admin.query(`alter database ${database} owner to ${owner.name}`)
  const installer = instance({ database: owner.url })
  await installer.migrate({ grantEmit: [emitter.name], grantRun: [runner.name] })
  // After the database, which everything they own is in.
  onTestFinished(async ({ task }) => {
    if (task.result?.state === 'fail') return
    const last = await connectAlone(serverUrl(major))
    await last.query(`drop database if exists ${database} with (force)`)
    for (const { name } of [owner, emitter, runner, stranger]) await last.query(`drop role ${name}`)
    await last.end()
  })
  return { emitter, runner, stranger, admin, database, url }
}

const refusals = [
  `insert into aftercommit.events (id, type, metadata, occurred_at) values ('x', 'x', '{}', now())`,
  `insert into aftercommit.events_open (position, id, type, metadata, occurred_at) values (1, 'x', 'x', '{}', now())`,
  `update aftercommit.events set payload = '{}'`,
  `delete from aftercommit.events`,
  `delete from aftercommit.event_ids`,
  `update aftercommit.streams set version = 0`,
  `update aftercommit.settings set max_depth = 1000`,
  `update aftercommit.log_state set frontier = 0`,
  `delete from aftercommit.epochs`,
  `delete from aftercommit.audit`,
  `truncate aftercommit.events`,
  `truncate aftercommit.events_open`,
  `select nextval('aftercommit.positions')`,
  `select setval('aftercommit.positions', 1)`,
  `alter sequence aftercommit.positions cache 50`,
  `alter table aftercommit.events disable trigger all`,
  `alter table aftercommit.events detach partition aftercommit.events_open`,
  `drop table aftercommit.events`,
  `create table aftercommit.mine (x int)`,
  `create function aftercommit.mine() returns int language sql as 'select 1'`,
  `create or replace function aftercommit.new_id() returns text language sql as $$ select 'x' $$`,
  `set session_replication_role = replica`,
]

/** Every way to change the past is closed, and what was tried left no trace. */
async function expectNoChange(sql: pg.Client, admin: pg.Client): Promise<void> {
  const history = () => admin.query('select * from aftercommit.events order by position')
  const before = (await history()).rows
  expect(before).not.toEqual([])
  for (const attempt of refusals) await expectRefused(sql, attempt)
  expect((await history()).rows).toEqual(before)
}

async function expectRefused(sql: pg.Client, attempt: string): Promise<void> {
  const outcome = await sql.query(attempt).then(
    () => 'allowed',
    (error) => error.code,
  )
  expect(`${outcome} ${attempt}`).toBe(`42501 ${attempt}`)
}

async function connectAlone(url: string): Promise<pg.Client> {
  const { default: driver } = await import('pg')
  const client = new driver.Client(url)
  await client.connect()
  return client
}

/** Functions and operators of ours by their names alone; whoever calls one of these is trapped. */
const TRAPS = [
  ...[
    'length(text)',
    'nextval(regclass)',
    'clock_timestamp()',
    'current_setting(text)',
    'current_setting(text, boolean)',
    'pg_notification_queue_usage()',
    'pg_notify(text, text)',
    'octet_length(text)',
    'jsonb_typeof(jsonb)',
    'jsonb_strip_nulls(jsonb)',
    'split_part(text, text, integer)',
    'gen_random_uuid()',
    'set_bit(bytea, bigint, integer)',
    'encode(bytea, text)',
    'quote_nullable(text)',
  ].map(
    (signature) =>
      `create function evil.${signature} returns text language plpgsql as $$ begin raise 'trapped'; end $$`,
  ),
  `create function evil.same(text, text) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$`,
  `create function evil.has(jsonb, text) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$`,
  `create function evil.more(timestamptz, timestamptz) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$`,
  `create operator evil.= (leftarg = text, rightarg = text, function = evil.same)`,
  `create operator evil.<> (leftarg = text, rightarg = text, function = evil.same)`,
  `create operator evil.!~ (leftarg = text, rightarg = text, function = evil.same)`,
  `create operator evil.? (leftarg = jsonb, rightarg = text, function = evil.has)`,
  `create operator evil.> (leftarg = timestamptz, rightarg = timestamptz, function = evil.more)`,
]
