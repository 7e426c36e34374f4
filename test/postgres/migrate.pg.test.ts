import { describe, expect, test } from 'vitest'
import {
  assertSchemaUsable,
  checksumOf,
  type Database,
  type Migration,
  type MigrationStep,
  migrate,
  recordAudit,
  schemaStatus,
} from '../../src/postgres/index.ts'
import { connect, openDatabase, openTestDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

const migration = (version: number, name: string, sql: string): Migration => ({
  version,
  name,
  sql,
  checksum: checksumOf(sql),
})

const NOTES = migration(1, 'notes', '-- older: keep\ncreate table :schema.notes (id integer, text text);')
const FLAGS = migration(
  2,
  'flags',
  '-- older: keep\nalter table :schema.notes add flag boolean; create view :schema.v as select 1;',
)
const BREAKING = migration(3, 'breaking', '-- older: refuse\nalter table :schema.notes drop flag;')
const INDEX = migration(
  3,
  'index',
  '-- concurrent\n-- older: keep\ncreate unique index concurrently notes_id on :schema.notes (id);',
)

const columns = async (db: Database) =>
  (
    await db.query<{ name: string }>(
      `select column_name::text as name from information_schema.columns
        where table_schema = $1::text and table_name = 'notes' order by 1`,
      [db.schemaName.name],
    )
  ).rows.map(({ name }) => name)

describe.each([18, 14] as const)('migrating on Postgres %i', (major) => {
  test('applies what is pending, once, and remembers who did it', async () => {
    const { db } = await openTestDatabase({ major, applicationName: 'deploy' })
    expect(await migrate(db, { migrations: [NOTES] })).toEqual({ applied: ['0001_notes'], placed: [], version: 1 })
    expect(await migrate(db, { migrations: [NOTES, FLAGS] })).toEqual({
      applied: ['0002_flags'],
      placed: [],
      version: 2,
    })
    expect(await migrate(db, { migrations: [NOTES, FLAGS] })).toEqual({ applied: [], placed: [], version: 2 })
    expect(await columns(db)).toEqual(['flag', 'id', 'text'])
    const { rows } = await db.query(
      `select version, name, applied_by as by, breaks_older as breaks from ${db.schema}.migrations order by 1`,
    )
    expect(rows).toEqual([
      { version: 1, name: 'notes', by: expect.stringMatching(/ aftercommit:migrate deploy$/), breaks: false },
      { version: 2, name: 'flags', by: expect.stringMatching(/ aftercommit:migrate deploy$/), breaks: false },
    ])
  })

  test('a file that fails leaves nothing of itself, and the files before it stay', async () => {
    const { db } = await openTestDatabase({ major })
    const broken = migration(2, 'broken', '-- older: keep\nalter table :schema.notes add half integer; select 1/0;')
    const failing = migrate(db, { migrations: [NOTES, broken] })
    await expect(failing).rejects.toMatchObject({ code: 'MIGRATION_FAILED', cause: { code: '22012' } })
    await expect(failing).rejects.toThrow('Migration 0002_broken failed and was rolled back: division by zero')
    expect(await columns(db)).toEqual(['id', 'text'])
    expect(await migrate(db, { migrations: [NOTES, FLAGS] })).toMatchObject({ version: 2 })
  })

  test('an index is built without a transaction, and a half-built one is built anew', async () => {
    const { db } = await openTestDatabase({ major })
    await migrate(db, { migrations: [NOTES, FLAGS] })
    await db.query(`insert into ${db.schema}.notes values (1), (1)`)
    await expect(migrate(db, { migrations: [NOTES, FLAGS, INDEX] })).rejects.toMatchObject({ code: 'MIGRATION_FAILED' })
    const valid = () =>
      db.query(`select indisvalid as valid from pg_index where indexrelid = '${db.schema}.notes_id'::regclass`)
    expect((await valid()).rows).toEqual([{ valid: false }])
    await db.query(`delete from ${db.schema}.notes`)
    expect(await migrate(db, { migrations: [NOTES, FLAGS, INDEX] })).toEqual({
      applied: ['0003_index'],
      placed: [],
      version: 3,
    })
    expect((await valid()).rows).toEqual([{ valid: true }])
  })
})

describe('racing migrators', () => {
  test('ten of them agree: every file is applied once and all succeed', async () => {
    const { url } = await testDatabase()
    const migrations = [NOTES, FLAGS, INDEX, migration(4, 'more', '-- older: keep\ncreate table :schema.more ()')]
    const racers = Array.from({ length: 10 }, () => openDatabase({ database: url }))
    const results = await Promise.all(racers.map((db) => migrate(db, { migrations })))
    expect(results.map(({ version }) => version)).toEqual(Array(10).fill(4))
    expect(results.flatMap(({ applied }) => applied).sort()).toEqual([
      '0001_notes',
      '0002_flags',
      '0003_index',
      '0004_more',
    ])
  })

  test('one that is stuck lets others pass nothing and lose nothing: they wait for it', async () => {
    const { db, url } = await openTestDatabase()
    const outside = await connect(url)
    await outside.query(
      `begin; select pg_advisory_xact_lock(hashtextextended($tag$${db.schemaName.lockKey('migrate')}$tag$, 0))`,
    )
    const steps: MigrationStep[] = []
    const waiting = migrate(db, { migrations: [NOTES], onStep: (step) => steps.push(step) })
    await eventually(() => steps.some(({ kind }) => kind === 'waiting'))
    expect(steps.some(({ kind }) => kind === 'applied')).toBe(false)
    await outside.query('rollback')
    expect(await waiting).toMatchObject({ applied: ['0001_notes'] })
  })
})

describe("other people's locks", () => {
  test('are met with a short wait and another try, so that traffic passes in between', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db, { migrations: [NOTES] })
    const blocker = await connect(url)
    await blocker.query(`begin; select from ${db.schema}.notes`)
    const steps: MigrationStep[] = []
    const onStep = (step: MigrationStep) => void steps.push(step)
    const blocked = migrate(db, { migrations: [NOTES, FLAGS], lockTimeoutMs: 50, retries: 1_000, onStep })
    await eventually(() => steps.some((step) => step.kind === 'blocked' && step.attempt >= 2))
    // Nothing of the blocked migrator waits now or then for longer than its lock timeout.
    await db.query(`insert into ${db.schema}.notes values (1)`)
    await blocker.query('commit')
    expect(await blocked).toMatchObject({ applied: ['0002_flags'] })
  })

  test('that never go away end in an error that says what to do', async () => {
    const { db, url } = await openTestDatabase()
    await migrate(db, { migrations: [NOTES] })
    const blocker = await connect(url)
    await blocker.query(`begin; select from ${db.schema}.notes`)
    const blocked = migrate(db, { migrations: [NOTES, FLAGS], lockTimeoutMs: 20, retries: 1 })
    await expect(blocked).rejects.toMatchObject({ code: 'MIGRATION_BLOCKED', cause: { code: '55P03' } })
    await expect(blocked).rejects.toThrow('0002_flags')
  })
})

describe('versions', () => {
  test('an empty or older schema sends a process to `aftercommit migrate`', async () => {
    const { db } = await openTestDatabase()
    const usable = (migrations: Migration[]) => assertSchemaUsable(db, { migrations })
    await expect(usable([NOTES])).rejects.toThrow(/at version 0 .* needs version 1.*aftercommit migrate/)
    await migrate(db, { migrations: [NOTES] })
    await usable([NOTES])
    await expect(usable([NOTES, FLAGS])).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' })
  })

  test('a newer schema is fine for an older process, unless a migration says otherwise', async () => {
    const { db } = await openTestDatabase()
    await migrate(db, { migrations: [NOTES, FLAGS] })
    await assertSchemaUsable(db, { migrations: [NOTES] })
    expect(await schemaStatus(db, { migrations: [NOTES] })).toMatchObject({
      state: 'ahead',
      current: 2,
      latest: 1,
      pending: [],
    })
    await migrate(db, { migrations: [NOTES, FLAGS, BREAKING] })
    const refused = assertSchemaUsable(db, { migrations: [NOTES, FLAGS] })
    await expect(refused).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    await expect(refused).rejects.toThrow(/at version 3, .*only version 2/)
    await expect(migrate(db, { migrations: [NOTES] })).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' })
  })

  test('a migration edited after it was applied stops everything', async () => {
    const { db } = await openTestDatabase()
    await migrate(db, { migrations: [NOTES] })
    const edited = migration(1, 'notes', `${NOTES.sql} -- harmless`)
    await expect(migrate(db, { migrations: [edited, FLAGS] })).rejects.toMatchObject({ code: 'MIGRATION_CHANGED' })
    await expect(assertSchemaUsable(db, { migrations: [edited] })).rejects.toThrow('0001_notes')
  })

  test('a target version is where it stops', async () => {
    const { db } = await openTestDatabase()
    expect(await migrate(db, { migrations: [NOTES, FLAGS], targetVersion: 1 })).toEqual({
      applied: ['0001_notes'],
      placed: [],
      version: 1,
    })
    expect(await schemaStatus(db, { migrations: [NOTES, FLAGS] })).toMatchObject({
      state: 'behind',
      pending: ['0002_flags'],
    })
  })
})

describe('hostile surroundings', () => {
  const HOSTILE = ['UPPER', 'with space', `Weird "x"; drop schema public; --`, `it's`, 'ünï', '1', 'x'.repeat(63)]

  test.each(HOSTILE)('schema %j works everywhere', async (schema) => {
    const { db } = await openTestDatabase({ schema })
    const literal = migration(
      4,
      'literal',
      '-- older: keep\ncreate function :schema.own() returns text language sql as $f$ select :schema_literal::text $f$;',
    )
    await migrate(db, { migrations: [NOTES, FLAGS, INDEX, literal] })
    await assertSchemaUsable(db, { migrations: [NOTES, FLAGS, INDEX, literal] })
    expect(await columns(db)).toEqual(['flag', 'id', 'text'])
    expect((await db.query(`select ${db.schema}.own() as name`)).rows).toEqual([{ name: schema }])
  })

  test('objects that shadow the catalog are not taken for it', async () => {
    const { url, name } = await testDatabase()
    const admin = await connect(url)
    await admin.query(`
      create schema evil;
      create function evil.set_config(text, text, boolean) returns text language plpgsql as $$ begin raise 'evil'; end $$;
      create function evil.hashtextextended(text, bigint) returns bigint language plpgsql as $$ begin raise 'evil'; end $$;
      create function evil.pg_try_advisory_xact_lock(bigint) returns boolean language plpgsql as $$ begin raise 'evil'; end $$;
      create function evil.current_setting(text) returns text language plpgsql as $$ begin raise 'evil'; end $$;
      create table evil.pg_class (relname text);
      create table evil.migrations (version integer);
      alter database ${name} set search_path = evil, pg_catalog`)
    const db = openDatabase({ database: url })
    expect(await migrate(db, { migrations: [NOTES] })).toMatchObject({ version: 1 })
    await assertSchemaUsable(db, { migrations: [NOTES] })
    expect((await admin.query('select from evil.migrations')).rowCount).toBe(0)
  })

  test('a role that owns its schema and may not create any can migrate', async () => {
    const { url, name } = await testDatabase()
    const admin = await connect(url)
    await admin.query(
      `create role owner_${name} login password 'x'; create schema aftercommit authorization owner_${name}`,
    )
    const database = url.replace(/^(postgres(?:ql)?:\/\/)[^@]*@/, `$1owner_${name}:x@`)
    const db = openDatabase({ database })
    expect(await migrate(db, { migrations: [NOTES] })).toMatchObject({ version: 1 })
    await db.close()
    await admin.query(`drop owned by owner_${name} cascade; drop role owner_${name}`)
  })
})

test('the audit keeps who did what to what, before and after', async () => {
  const { db } = await openTestDatabase()
  const audit = migration(
    1,
    'audit',
    `create table :schema.audit (id bigint generated always as identity, at timestamptz default clock_timestamp(),
       who text, what text, target text, before jsonb, after jsonb, reason text)`,
  )
  await migrate(db, { migrations: [audit] })
  await db.transaction(async (tx) => {
    await recordAudit(tx, {
      who: 'ann',
      what: 'subscription.seek',
      target: 'mail',
      before: { position: 7n },
      after: { position: 9n },
    })
    await recordAudit(tx, { who: 'bob', what: 'letter.discard', target: '4', reason: 'duplicate' })
  })
  const { rows } = await db.query(
    `select who, what, target, before::text, after::text, reason from ${db.schema}.audit order by id`,
  )
  expect(rows).toEqual([
    {
      who: 'ann',
      what: 'subscription.seek',
      target: 'mail',
      before: '{"position": "7"}',
      after: '{"position": "9"}',
      reason: null,
    },
    { who: 'bob', what: 'letter.discard', target: '4', before: null, after: null, reason: 'duplicate' },
  ])
})
