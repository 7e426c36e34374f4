/** Functions, triggers and views as files: put in place when they differ, and never an older one over a newer one. */
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  assertSchemaUsable,
  checksumOf,
  type Database,
  grantRole,
  loadMigrations,
  loadSqlFiles,
  type Migration,
  migrate,
  migrationScript,
  type SqlFile,
  type SqlFiles,
  schemaStatus,
} from '../../src/postgres/index.ts'
import { bookMigration } from '../../src/postgres/migration-statements.ts'
import { connect, openDatabase, openTestDatabase, serverUrl, testDatabase } from '../support/database.ts'
import { schemaSnapshot } from '../support/schema-snapshot.ts'

const SERVERS = [18, 14] as const

const file = (name: string, sql: string, more: Partial<SqlFile> = {}): SqlFile => ({
  name: `notes/${name}`,
  kind: 'function',
  object: name,
  grants: 'run',
  comment: `About ${name}.`,
  sql,
  hash: checksumOf(sql),
  ...more,
})
const answering = (answer: number, more: Partial<SqlFile> = {}) =>
  file(
    'answer',
    `create or replace function :schema.answer() returns integer language sql as $$ select ${answer} $$`,
    more,
  )

describe.each(SERVERS)('files on Postgres %i', (major) => {
  test('a clean migration puts them in place, and a second one changes nothing', async () => {
    const { db } = await openTestDatabase({ major })
    const { files } = await loadSqlFiles()
    expect((await migrate(db)).placed).toEqual(files.map(({ name }) => name))
    const before = await schemaSnapshot(db)
    expect(await migrate(db)).toMatchObject({ applied: [], placed: [] })
    expect(await schemaSnapshot(db)).toEqual(before)
    expect(await schemaStatus(db)).toMatchObject({ state: 'current', pendingFiles: [] })
  })

  test('the script of `--sql` arrives at the same schema, and is empty afterwards', async () => {
    const { db } = await openTestDatabase({ major })
    await migrate(db)
    const { db: byHand, url } = await openTestDatabase({ major })
    const script = await migrationScript(byHand)
    await (await connect(url)).query(script)
    expect(await schemaSnapshot(byHand)).toEqual(await schemaSnapshot(db))
    expect(await migrationScript(byHand)).toBe('')
    await assertSchemaUsable(byHand)
  })

  test('a file whose content differs is replaced, one that was dropped comes back, the others are left alone', async () => {
    const { db } = await openTestDatabase({ major })
    await migrate(db)
    await db.query(`drop function ${db.schema}.new_id cascade`)
    await db.query(`update ${db.schema}.sql_files set hash = 'other' where name = 'delivery/busy_lanes'`)
    expect(await schemaStatus(db)).toMatchObject({
      state: 'behind',
      pendingFiles: ['log/new_id', 'delivery/busy_lanes'],
    })
    await expect(assertSchemaUsable(db)).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' })
    expect((await migrate(db)).placed).toEqual(['log/new_id', 'delivery/busy_lanes'])
    await assertSchemaUsable(db)
  })
})

describe('an older build', () => {
  const newer = async (db: Database) => {
    await migrate(db, { migrations: await tables(), sql: { version: 2, files: [answering(2)] } })
  }

  test('does not put its functions over those of a newer one, and works with them', async () => {
    const { db } = await openTestDatabase()
    await newer(db)
    const old = { migrations: await tables(), sql: { version: 1, files: [answering(1), file('gone', GONE)] } }
    expect(await migrate(db, old)).toMatchObject({ applied: [], placed: [] })
    expect(await ask(db)).toBe(2)
  })

  test('is replaced by a newer one, also where only the version rises', async () => {
    const { db } = await openTestDatabase()
    const migrations = await tables()
    const old: SqlFiles = { version: 1, files: [answering(1), file('gone', GONE)] }
    await migrate(db, { migrations, sql: old })
    expect((await migrate(db, { migrations, sql: { version: 2, files: [answering(2)] } })).placed).toEqual([
      'notes/answer',
    ])
    expect(await ask(db)).toBe(2)
    // What only the old build calls stays for it.
    expect((await db.query(`select ${db.schema}.gone() as gone`)).rows).toEqual([{ gone: 1 }])
    expect(await migrate(db, { migrations, sql: old })).toMatchObject({ placed: [] })
    expect(await ask(db)).toBe(2)
  })

  test('a function of another signature under the same name is refused, and nothing changes', async () => {
    const { db } = await openTestDatabase()
    const migrations = await tables()
    await migrate(db, { migrations, sql: { version: 1, files: [answering(1)] } })
    const other = file(
      'answer',
      'create or replace function :schema.answer(to_what text) returns integer language sql as $$ select 2 $$',
    )
    const refused = migrate(db, { migrations, sql: { version: 2, files: [other] } })
    await expect(refused).rejects.toMatchObject({ code: 'MIGRATION_FAILED', cause: { code: '42725' } })
    await expect(refused).rejects.toThrow('sql/notes/answer')
    expect(await ask(db)).toBe(1)
  })
})

describe('rights', () => {
  test('of a running role reach functions and tables that a later migration adds', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const { role, runner } = await makeRole(db, url)
    await grantRole(db, role, 'run')
    const { files, version } = await loadSqlFiles()
    const known = await loadMigrations()
    await db.query(`revoke all on all tables in schema ${db.schema} from ${role}`)
    const added = migration(known.length + 1, '-- older: keep\ncreate table :schema.more (id integer)')
    await migrate(db, {
      migrations: [...known, added],
      sql: { version: version + 1, files: [...files, answering(3, { name: 'log/answer' })] },
    })
    expect(await ask(runner)).toBe(3)
    expect((await runner.query(`select from ${db.schema}.events`)).rowCount).toBe(0)
  })

  test('of a running role are given again by a migration of tables alone', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const { role, runner } = await makeRole(db, url)
    await grantRole(db, role, 'run')
    await db.query(`revoke all on ${db.schema}.events from ${role}`)
    await expect(runner.query(`select from ${db.schema}.events`)).rejects.toMatchObject({ code: '42501' })
    const known = await loadMigrations()
    const added = migration(known.length + 1, '-- older: keep\nselect 1')
    expect(await migrate(db, { migrations: [...known, added], sql: await loadSqlFiles() })).toMatchObject({
      placed: [],
    })
    expect((await runner.query(`select from ${db.schema}.events`)).rowCount).toBe(0)
  })

  test('of a running role are given by the newer build, also where an older one migrates between its two steps', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const { role, runner } = await makeRole(db, url)
    await grantRole(db, role, 'run')
    const known = await loadMigrations()
    const added = migration(known.length + 1, '-- older: keep\nselect 1')
    // The newer build has committed its migration, and has not given the rights yet.
    await db.query(bookMigration(added, db.schemaName))
    await migrate(db)
    await grantRole(db, role, 'run')
    await db.query(`revoke all on ${db.schema}.events from ${role}`)
    await migrate(db, { migrations: [...known, added], sql: await loadSqlFiles() })
    expect((await runner.query(`select from ${db.schema}.events`)).rowCount).toBe(0)
  })

  test('of a running role are part of the script of `--sql` for a migration of tables alone', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const { role, runner } = await makeRole(db, url)
    await grantRole(db, role, 'run')
    await db.query(`revoke all on ${db.schema}.events from ${role}`)
    const known = await loadMigrations()
    const added = migration(known.length + 1, '-- older: keep\nselect 1')
    const definition = { migrations: [...known, added], sql: await loadSqlFiles() }
    await (await connect(url)).query(await migrationScript(db, [], definition))
    expect((await runner.query(`select from ${db.schema}.events`)).rowCount).toBe(0)
    expect(await migrationScript(db, [], definition)).toBe('')
  })

  test('are nobody else’s: PUBLIC may call no function of the schema', async () => {
    const { db } = await openTestDatabase()
    await migrate(db)
    const { rows } = await db.query(
      `select p.proname from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = '${db.schema}'::regnamespace and a.grantee = 0`,
    )
    expect(rows).toEqual([])
  })

  test('of a role that was dropped meanwhile do not stop a migration', async () => {
    const { db } = await openTestDatabase()
    await migrate(db)
    await db.query(
      `insert into ${db.schema}.granted_roles values ('nobody_${randomBytes(4).toString('hex')}', 'run', 0)`,
    )
    await db.query(`update ${db.schema}.sql_files set hash = 'other' where name = 'log/new_id'`)
    expect((await migrate(db)).placed).toEqual(['log/new_id'])
  })
})

test.each([
  ['D', 'disable trigger bell'],
  ['A', 'enable always trigger bell'],
  ['R', 'enable replica trigger bell'],
])('a trigger that is replaced keeps how an operator enabled it (%s)', async (state, how) => {
  const { db } = await openTestDatabase()
  await migrate(db)
  await db.query(`alter table ${db.schema}.events ${how}`)
  await db.query(`update ${db.schema}.sql_files set hash = 'other' where name = 'log/bell'`)
  expect((await migrate(db)).placed).toEqual(['log/bell'])
  const { rows } = await db.query(
    `select tgenabled::text as state from pg_trigger where tgname = 'bell' and tgrelid = '${db.schema}.events'::regclass`,
  )
  expect(rows).toEqual([{ state }])
})

test('the schema says in the database what it is for: functions, triggers, views, tables, sequences and public columns', async () => {
  const { db } = await openTestDatabase()
  await migrate(db)
  const { rows } = await db.query<{ name: string; comment: string }>(
    `select proname::text as name, obj_description(oid, 'pg_proc') as comment
       from pg_proc where pronamespace = '${db.schema}'::regnamespace
     union all
     select relname::text, obj_description(oid, 'pg_class') from pg_class
      where relnamespace = '${db.schema}'::regnamespace and not relispartition
        and (relkind in ('v', 'r', 'p') or relkind = 'S' and relname !~ '_(id|number|lane)_seq$')
     union all
     select tgname::text, obj_description(t.oid, 'pg_trigger') from pg_trigger t join pg_class c on c.oid = tgrelid
      where relnamespace = '${db.schema}'::regnamespace and not tgisinternal
     union all
     select c.relname || '.' || attname, col_description(c.oid, attnum) from pg_attribute join pg_class c on c.oid = attrelid
      where relnamespace = '${db.schema}'::regnamespace and attnum > 0 and (relkind = 'v' or relname = 'events')
     union all
     select nspname::text, obj_description(oid, 'pg_namespace') from pg_namespace where oid = '${db.schema}'::regnamespace`,
  )
  expect(rows.filter(({ comment }) => !comment)).toEqual([])
  expect(rows.find(({ name }) => name === 'emit')?.comment).toContain('SQL')
  expect(rows.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['bell', 'delivery_ids', 'outbox.relay', 'aftercommit']),
  )
})

test('eight migrators at once arrive at the schema of one', async () => {
  const { db: alone } = await openTestDatabase()
  await migrate(alone)
  const { url } = await testDatabase()
  const racers = Array.from({ length: 8 }, () => openDatabase({ database: url }))
  await Promise.all(racers.map((db) => migrate(db)))
  expect(await schemaSnapshot(racers[0]!)).toEqual(await schemaSnapshot(alone))
})

const GONE = 'create or replace function :schema.gone() returns integer language sql as $$ select 1 $$'

function migration(version: number, sql: string): Migration {
  return { version, name: `m${version}`, sql, checksum: checksumOf(sql) }
}

async function tables(): Promise<Migration[]> {
  return [migration(1, '-- older: keep\ncreate table :schema.notes (id integer)')]
}

async function ask(db: Database): Promise<number> {
  const { rows } = await db.query<{ answer: number }>(`select ${db.schema}.answer() as answer`)
  return Number(rows[0]!.answer)
}

async function makeRole(db: Database, url: string) {
  const role = `ac_run_${randomBytes(4).toString('hex')}`
  const cluster = await connect(serverUrl())
  await cluster.query(`create role ${role} login password '${role}'`)
  onTestFinished(async () => {
    await db.query(`drop owned by ${role}`)
    await cluster.query(`drop role ${role}`)
  })
  return { role, runner: openDatabase({ database: url.replace(/\/\/[^/@]*@/, `//${role}:${role}@`) }) }
}
