/** Rolling deploys: a process of this build beside a schema that a newer one has migrated. */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Database, loadSqlFiles, type MigrationStep, migrate, migrationScript } from '../../src/postgres/index.ts'
import { buildPackage } from '../support/build.ts'
import { connect, openDatabase, openTestDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type OtherBuildChanges, otherBuild } from '../support/other-build.ts'
import { spawnScript, type TestProcess } from '../support/processes.ts'
import { schemaSnapshot } from '../support/schema-snapshot.ts'

const OLDER = fileURLToPath(new URL('./older-process.mjs', import.meta.url))

beforeAll(buildPackage)

describe('a process beside a newer schema that lets it run', () => {
  test.each([18, 14] as const)(
    'emits, reads and migrates without putting an old body back (Postgres %i)',
    async (major) => {
      const { db, url } = await openTestDatabase({ major })
      await migrate(db)
      const older = await start(url, 'works')
      await expectHandled(older)

      const newer = otherBuild({
        version: (await loadSqlFiles()).version + 1,
        files: {
          'sql/log/append.sql': (before) => before.replace('\nbegin\n', '\nbegin\n  -- a newer body\n'),
          'sql/log/note.sql': () =>
            '-- grants: run\n-- Answers.\ncreate or replace function :schema.note() returns integer language sql as $$ select 1 $$;\n',
        },
        migrations: [{ name: 'notes', older: 'keep', sql: 'create table :schema.notes (id integer);' }],
      })
      expect(await migrate(db, newer)).toMatchObject({ placed: expect.arrayContaining(['log/append', 'log/note']) })
      const migrated = await schemaSnapshot(db)

      await expectHandled(older)
      expect(await ask(older, 'migrate')).toEqual({ applied: [], placed: [] })
      expect(await schemaSnapshot(db)).toEqual(migrated)
      await expectHandled(older)
      expect(await ask(older, 'health')).toMatchObject({ ready: true })
      // A second process of the older version may still start.
      await expectHandled(await start(url, 'works'), older)
    },
  )
})

describe('a process beside a newer schema that older processes must not write to', () => {
  test('ends its work, refuses to emit and to migrate with SCHEMA_TOO_NEW, and is not ready', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const older = await start(url, 'works')
    await expectHandled(older)
    await migrate(db, await breaking())

    // Found by itself, before it emits.
    await older.waitForLine('"error":"SCHEMA_TOO_NEW"')
    expect(await ask(older, 'health')).toEqual({
      live: true,
      ready: false,
      reasons: ['the schema was migrated by a newer aftercommit, which this version must not write to'],
    })
    expect(await ask(older, 'emit')).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    expect(await ask(older, 'migrate')).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    expect(await countEvents(db)).toBe(1)
    // SQL belongs to no version: its callers know nothing of migrations.
    await db.query(`select ${db.schema}.emit('note.from_sql', 'note', '1', '{}')`)
    expect(await countEvents(db)).toBe(2)
  })

  test('emits nothing and is not ready where it only emits', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db)
    const older = await start(url, 'emits')
    expect(await ask(older, 'emit')).toMatchObject({ id: expect.any(String) })
    await migrate(db, await breaking())
    expect(await ask(older, 'emit')).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    expect(await ask(older, 'health')).toMatchObject({ live: true, ready: false })
    expect(await countEvents(db)).toBe(1)
  })

  async function breaking() {
    return otherBuild({
      version: (await loadSqlFiles()).version + 1,
      migrations: [{ name: 'breaks', older: 'refuse', sql: 'create table :schema.notes (id integer);' }],
    })
  }
})

describe('a function that a newer build no longer has', () => {
  const OLD = { 'sql/log/note.sql': () => callable('note', 'select 1') }

  test('stays for older processes until a migration that these refuse drops it', async () => {
    const { db } = await openTestDatabase()
    const { version } = await loadSqlFiles()
    await migrate(db, otherBuild({ version, files: OLD }))
    const renamed = { 'sql/log/note_2.sql': () => callable('note_2', 'select 2') }
    await migrate(db, otherBuild({ version: version + 1, files: renamed }))
    expect(await functionsLike(db, 'note')).toEqual(['note', 'note_2'])
    const drop = { name: 'drop_note', older: 'refuse' as const, sql: 'drop function :schema.note();' }
    await migrate(db, otherBuild({ version: version + 2, files: renamed, migrations: [drop] }))
    expect(await functionsLike(db, 'note')).toEqual(['note_2'])
  })

  test('is dropped alone: what an operator built on it makes the migration fail, and nothing changes', async () => {
    const { db } = await openTestDatabase()
    const { version } = await loadSqlFiles()
    await migrate(db, otherBuild({ version, files: OLD }))
    await db.query(`create view ${db.schema}.mine as select ${db.schema}.note()`)
    const drop = { name: 'drop_note', older: 'refuse' as const, sql: 'drop function :schema.note();' }
    const failing = migrate(db, otherBuild({ version: version + 1, migrations: [drop] }))
    await expect(failing).rejects.toMatchObject({ code: 'MIGRATION_FAILED', cause: { code: '2BP01' } })
    expect(await functionsLike(db, 'note')).toEqual(['note'])
    expect((await db.query(`select from ${db.schema}.mine`)).rowCount).toBe(1)
  })

  test.each<[string, OtherBuildChanges['migrations'], RegExp]>([
    [
      'a migration that older processes live with',
      [dropping('keep', '()')],
      /only a migration with "-- older: refuse"/,
    ],
    ['CASCADE', [dropping('refuse', '() cascade')], /never with CASCADE/],
  ])('is not dropped by %s: the build refuses it', (_, migrations, reason) => {
    expect(() => otherBuild({ version: 2, migrations: migrations! })).toThrow(reason)
  })

  test('is not dropped while a file of the build still makes it', () => {
    const migrations = [{ ...dropping('refuse', ''), sql: 'drop function :schema.new_id();' }]
    expect(() => otherBuild({ version: 2, migrations })).toThrow(/new_id is dropped, and sql\/log\/new_id.sql makes it/)
  })

  function dropping(older: 'keep' | 'refuse', how: string) {
    return { name: 'drop_note', older, sql: `drop function :schema.note${how};` }
  }
})

test('a trigger that changed waits for the locks of others in short tries, and functions come with it', async () => {
  const { db, url } = await openTestDatabase()
  await migrate(db)
  await db.query(`alter table ${db.schema}.events enable replica trigger bell`)
  const newer = otherBuild({
    version: (await loadSqlFiles()).version + 1,
    files: {
      'sql/log/bell.trigger.sql': (before) => `${before}-- changed\n`,
      'sql/log/note.sql': () => callable('note', 'select 1'),
    },
  })
  const holder = await connect(url)
  await holder.query(`begin; select ${db.schema}.emit('note.held', 'note', '1', '{}')`)
  const steps: MigrationStep[] = []
  const migrating = migrate(db, { ...newer, lockTimeoutMs: 50, retries: 1_000, onStep: (step) => steps.push(step) })
  await eventually(() => steps.filter(({ kind }) => kind === 'blocked').length >= 2)
  // Emitting does not wait behind the migrator for longer than its lock timeout.
  await db.query(`select ${db.schema}.emit('note.other', 'note', '1', '{}')`)
  expect(await functionsLike(db, 'note')).toEqual([])
  await holder.query('commit')
  expect((await migrating).placed).toEqual(['log/note', 'log/bell'])
  const { rows } = await db.query(
    `select tgenabled::text as state from pg_trigger where tgname = 'bell' and tgrelid = '${db.schema}.events'::regclass`,
  )
  expect(rows).toEqual([{ state: 'R' }])
})

test('triggers that did not change are not replaced', async () => {
  const { db, url } = await openTestDatabase()
  await migrate(db)
  const holder = await connect(url)
  await holder.query(`begin; select ${db.schema}.emit('note.held', 'note', '1', '{}')`)
  const newer = otherBuild({
    version: (await loadSqlFiles()).version + 1,
    files: { 'sql/log/note.sql': () => callable('note', 'select 1') },
  })
  expect((await migrate(db, { ...newer, lockTimeoutMs: 50, retries: 0 })).placed).toEqual(['log/note'])
})

test.each(['migrate', 'migrate --sql'])(
  '%s works for a role that owns an empty schema and may create none',
  async (how) => {
    const { url, name } = await testDatabase()
    const admin = await connect(url)
    const role = `owner_${name}`
    await admin.query(`create role ${role} login password 'x'; create schema aftercommit authorization ${role}`)
    const database = url.replace(/\/\/[^/@]*@/, `//${role}:x@`)
    const db = openDatabase({ database })
    if (how === 'migrate') await migrate(db)
    else await (await connect(database)).query(await migrationScript(db))
    expect(await migrate(db)).toMatchObject({ applied: [], placed: [] })
    await db.close()
    await admin.query(`drop owned by ${role} cascade; drop role ${role}`)
  },
)

async function start(url: string, role: 'works' | 'emits'): Promise<TestProcess> {
  const child = spawnScript(OLDER, [url, role])
  await child.waitForLine('"ready":true')
  return child
}

/** Sends a command and gives its answer: the first line of that name after the lines that are there. */
async function ask(process: TestProcess, command: 'migrate' | 'emit' | 'health'): Promise<Record<string, unknown>> {
  const before = process.lines.length
  process.send(command)
  const isAnswer = (line: string) => line.startsWith(`{"${command}":`)
  const line = await eventually(() => process.lines.slice(before).find(isAnswer))
  return JSON.parse(line)[command]
}

/** One process emits, and the owner of the subscription handles it. */
async function expectHandled(emitter: TestProcess, owner = emitter): Promise<void> {
  const { id } = await ask(emitter, 'emit')
  expect(id).toEqual(expect.any(String))
  await owner.waitForLine(`{"handled":"${id}"}`)
}

async function countEvents(db: Database): Promise<number> {
  return (await db.query(`select from ${db.schema}.events`)).rowCount!
}

async function functionsLike(db: Database, name: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select proname::text as name from pg_proc
      where pronamespace = '${db.schema}'::regnamespace and proname like '${name}%' order by 1`,
  )
  return rows.map((row) => row.name)
}

function callable(name: string, body: string): string {
  return `-- grants: run\n-- Answers.\ncreate or replace function :schema.${name}() returns integer language sql as $$ ${body} $$;\n`
}
