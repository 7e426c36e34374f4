/** Tables that are declared in options or in the file, and triggers that were lost. */
import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type AftercommitOptions, createAftercommit, defineEvents } from '../../src/index.ts'
import { anything } from './support/anything.ts'
import { type CapturedDatabase, capturedDatabase } from './support/captured.ts'

const ORDERS = 'create table orders (id integer primary key, status text, note text)'

function instance({ url }: CapturedDatabase, options: AftercommitOptions = {}) {
  const ac = createAftercommit({ database: url, ...options })
  onTestFinished(() => ac.stop())
  return ac
}

describe('migrate', () => {
  test('captures declared tables once, changes what is declared otherwise, and leaves other tables alone', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, 'create table users (id integer primary key)', "select aftercommit.capture('users')")
    const first = instance(database, { capture: { orders: { omit: ['note'] } } })
    expect(await first.capture.pending()).toEqual([
      { table: 'public.orders', reason: 'new', sql: expect.stringContaining("capture('public.orders'") },
    ])
    expect((await first.migrate()).captured).toMatchObject([{ table: 'public.orders', reason: 'new', outcome: 'done' }])
    expect((await first.migrate()).captured).toEqual([])

    const second = instance(database, { capture: { orders: { omit: ['note'], truncate: 'deny' } } })
    expect((await second.migrate()).captured).toMatchObject([{ reason: 'changed', outcome: 'done' }])
    expect(await second.capture.list()).toMatchObject([
      { table: 'public.orders', aggregate: 'order', omit: ['note'], truncate: 'deny', missing: [], exists: true },
      { table: 'public.users', aggregate: 'user', omit: [], truncate: 'event' },
    ])
  })

  test('says that a declared table is not there yet, and captures it once it is', async () => {
    const database = await capturedDatabase()
    const ac = instance(database, { capture: { orders: {} } })
    expect((await ac.migrate()).captured).toMatchObject([{ table: 'orders', reason: 'no such table', outcome: 'left' }])
    await database.run(ORDERS)
    expect((await ac.migrate()).captured).toMatchObject([{ outcome: 'done' }])
  })

  test('rejects with the reason when a declared table cannot be captured', async () => {
    const database = await capturedDatabase()
    await database.run('create view orders as select 1 as id')
    await expect(instance(database, { capture: { orders: {} } }).migrate()).rejects.toMatchObject({
      code: 'CAPTURE_REFUSED',
      message: expect.stringContaining('view'),
    })
  })

  test('leaves a table of another owner, and says what that owner has to run', async () => {
    const database = await capturedDatabase()
    const role = `owner_${Math.random().toString(36).slice(2)}`
    await database.run(ORDERS, `create role ${role} login`, `grant usage, create on schema public to ${role}`)
    await instance(database).migrate({ grantEmit: [role] })
    const url = database.url.replace(/^(postgres(?:ql)?:\/\/)(?:[^@/]*@)?/, `$1${role}@`)
    const ac = instance({ ...database, url }, { capture: { orders: {} } })
    expect(await ac.capture.pending()).toMatchObject([{ reason: 'new' }])
    await expect(ac.capture.add('orders')).rejects.toMatchObject({ code: 'CAPTURE_REFUSED' })
    await database.run(`alter table orders owner to ${role}`)
    expect(await ac.capture.add('orders', { aggregate: 'purchase' })).toMatchObject({ aggregate: 'purchase' })
    await database.run("insert into orders values (1, 'new', null)")
    expect((await database.events()).map(({ type }) => type)).toEqual(['purchase.created'])
    await database.run(`drop table orders`, `drop owned by ${role}`, `drop role ${role}`)
  })
})

describe('triggers that were lost', () => {
  const LOSSES: Readonly<Record<string, readonly string[]>> = {
    'a trigger that was dropped': ['drop trigger aftercommit_update on orders'],
    'a trigger that was disabled': ['alter table orders disable trigger aftercommit_insert'],
    'a table that was dropped and made again': ['drop table orders', ORDERS],
    'a column that was renamed': ['alter table orders rename column id to number'],
  }

  test.for(Object.entries(LOSSES))('%s: doctor names the table, migrate mends it', async ([, statements]) => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders')", ...statements)
    const ac = instance(database)
    const found = async () => (await ac.doctor()).filter(({ check, level }) => check === 'capture' && level !== 'ok')
    expect(await found()).toMatchObject([{ level: 'problem', message: expect.stringContaining('public.orders') }])
    expect((await ac.migrate()).captured).toMatchObject([{ reason: 'lost triggers', outcome: 'done' }])
    expect(await found()).toEqual([])
    await database.run("insert into orders values (7, 'new', null)")
    expect((await database.events()).map(({ aggregate_id }) => aggregate_id)).toEqual(['7'])
  })

  test('a new partition and a new inherited child that are written by their own names: upkeep mends them', async () => {
    const database = await capturedDatabase()
    await database.run(
      'create table orders (id integer primary key) partition by range (id)',
      'create table things (id integer primary key)',
      "select aftercommit.capture('orders')",
      "select aftercommit.capture('things')",
      'create table orders_1 partition of orders for values from (0) to (10)',
      'create table old_things (primary key (id)) inherits (things)',
    )
    const ac = instance(database)
    expect((await ac.capture.list()).map(({ missing }) => missing.length)).toEqual([4, 4])
    await ac.upkeep()
    expect((await ac.capture.list()).map(({ missing }) => missing.length)).toEqual([0, 0])
    await database.run('insert into orders_1 values (1)', 'insert into old_things values (1)')
    expect((await database.events()).map(({ type }) => type)).toEqual(['order.created', 'thing.created'])
  })

  test('a renamed table stays captured under its new name', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders')", 'alter table orders rename to purchases')
    const ac = instance(database)
    await ac.migrate()
    await database.run("insert into purchases values (1, 'new', null)")
    expect(await ac.capture.list()).toMatchObject([{ table: 'public.purchases', aggregate: 'order', missing: [] }])
    expect(await database.events()).toMatchObject([
      { type: 'order.created', metadata: { captured_from: 'public.purchases' } },
    ])
  })

  test('a captured table that is gone is named, and can be forgotten', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS, "select aftercommit.capture('orders')", 'drop table orders')
    const ac = instance(database)
    expect((await ac.doctor()).filter(({ check }) => check === 'capture')).toMatchObject([{ level: 'note' }])
    expect(await ac.capture.remove({ aggregate: 'order' })).toBe(true)
    expect(await ac.capture.list()).toEqual([])
  })
})

describe('in a program', () => {
  test('a write that emits for itself with capture: false is one event, not two', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS)
    const ac = instance(database, { capture: { orders: {} } })
    await ac.migrate()
    await ac.transaction(
      async (tx) => {
        await tx.query("insert into orders values (1, 'new', null)")
        await tx.emit('order.placed', { aggregate: { type: 'order', id: '1' }, payload: {} })
      },
      { capture: false },
    )
    await ac.transaction((tx) => tx.query("insert into orders values (2, 'new', null)"))
    expect((await database.events()).map(({ type }) => type)).toEqual(['order.placed', 'order.created'])
  })

  test('captured events stand in the catalogue, and their rows are checked and read like other payloads', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS)
    const events = defineEvents({ 'order.placed': anything })
    const ac = instance(database, { events, capture: { orders: { row: anything } } } as AftercommitOptions)
    await ac.migrate()
    const seen: string[] = []
    ac.subscribe({ id: 'orders', on: ['order.created'] as never, handle: ({ type }) => void seen.push(type) })
    await database.run("insert into orders values (1, 'new', null)")
    await ac.drain()
    expect(seen).toEqual(['order.created'])
  })

  test('a transaction tells the database the trace under way once tables are captured, within BEGIN', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const telemetry = { currentTraceparent: () => traceparent } as never
    const write = (ac: ReturnType<typeof instance>, id: number) =>
      ac.transaction(async (tx) => {
        await tx.query('insert into orders values ($1, null, null)', [id])
        const { rows } = await tx.query<{ trace: string | null }>(
          "select current_setting('aftercommit.traceparent', true) as trace",
        )
        return rows[0]!.trace || null
      })
    expect(await write(instance(database, { telemetry }), 1)).toBeNull()
    const ac = instance(database, { telemetry, capture: { orders: {} } })
    await ac.migrate()
    expect(await write(ac, 2)).toBe(traceparent)
    expect((await database.events())[0]).toMatchObject({ metadata: { traceparent } })
  })
})

describe('the file', () => {
  const run = promisify(execFile)

  test('[capture.orders] is listed by a dry run, put in place by migrate, and shown by capture list', async () => {
    const database = await capturedDatabase()
    await database.run(ORDERS)
    const folder = await mkdtemp(join(tmpdir(), 'aftercommit-'))
    const file = join(folder, 'aftercommit.toml')
    await writeFile(file, `database = "${database.url}"\n[capture.orders]\nomit = ["note"]\n`)
    const cli = (...words: string[]) => run('node', ['dist/cli/main.js', ...words, '--config', file])
    expect((await cli('migrate', '--dry-run')).stdout).toContain('capture of table public.orders (new)')
    expect((await cli('migrate', '--sql')).stdout).toContain("capture('public.orders'")
    expect((await cli('migrate')).stderr).toContain('table public.orders is captured (new)')
    expect((await cli('capture', 'list')).stdout).toMatch(/public\.orders +order +statement +event +note +in place/)
  })
})
