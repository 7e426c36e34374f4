import { describe, expect, onTestFinished, test } from 'vitest'
import { checksumOf, createListener, type Database, detectPath, migrate } from '../../src/postgres/index.ts'
import { connect, openDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'

const MIGRATIONS = [
  'create table :schema.notes (id integer primary key)',
  '-- concurrent\ncreate index concurrently notes_again on :schema.notes (id)',
].map((sql, index) => ({ version: index + 1, name: 'notes', sql, checksum: checksumOf(sql) }))

function listen(db: Database, { retestMs = 300_000, selfTestTimeoutMs = 30_000 } = {}) {
  const heard: string[] = []
  const listener = createListener({
    db,
    processId: 'p1',
    onNotify: (payload) => heard.push(payload),
    onReconnect: () => {},
    heartbeatMs: 50,
    selfTestTimeoutMs,
    retestMs,
  })
  onTestFinished(() => listener.stop())
  return { listener, heard }
}

const pathOf = async (db: Database) => {
  const session = await db.openSession('probe')
  try {
    return await detectPath(session, () => db.openSession('probe'))
  } finally {
    session.destroy()
  }
}

describe.skipIf(!hasPgbouncer())('behind PgBouncer in transaction mode', () => {
  test.each([1, 4])(
    'with %i server connections, the path is recognised before anything is left behind',
    async (size) => {
      const { url } = await testDatabase()
      const db = openDatabase({ database: await startPgbouncer(url, 'transaction', size) })
      expect(await pathOf(db)).toBe('transaction pooler')
    },
  )

  test('there is no LISTEN and no session lock, it is said once, and everything else works', async () => {
    const { url } = await testDatabase()
    const { logger, lines } = collectingLogger()
    const db = openDatabase({ database: await startPgbouncer(url, 'transaction'), logger })
    // No notification ever comes through this pooler, so nothing is gained by waiting for it longer.
    const { listener } = listen(db, { retestMs: 20, selfTestTimeoutMs: 500 })
    await listener.start()
    await eventually(() => listener.mode === 'unavailable')
    expect(listener.reason).toContain('`directDatabase`')

    expect(await migrate(db, { migrations: MIGRATIONS })).toMatchObject({ version: 2 })
    await db.transaction(
      async (tx) => {
        await tx.query(`insert into ${db.schema}.notes values (($1::text)::integer)`, [1])
        await tx.savepoint(async () => void (await tx.query(`insert into ${db.schema}.notes values (2)`)))
      },
      { isolation: 'repeatable read', lockTimeoutMs: 1_000 },
    )
    const many = await Promise.all(
      Array.from({ length: 30 }, (_, n) => db.query('select ($1::text)::integer as n', [n])),
    )
    expect(many.map(({ rows }) => rows[0]!.n)).toEqual(Array.from({ length: 30 }, (_, n) => n))

    const outside = await connect(url)
    const locks = await outside.query(
      `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
    )
    expect(locks.rowCount).toBe(0)
    const settings = await db.query(`select current_setting('lock_timeout') as lock`)
    expect(settings.rows).toEqual([{ lock: '0' }])
    expect(lines.filter((line) => line.includes('readers poll'))).toHaveLength(1)
  })

  test('with a direct address past it, listening works', async () => {
    const { url } = await testDatabase()
    const db = openDatabase({ database: await startPgbouncer(url, 'transaction'), directDatabase: url })
    const { listener, heard } = listen(db)
    await listener.start()
    await eventually(() => listener.mode === 'listening')
    await db.query('select pg_notify($1::text, $2::text)', [db.schemaName.channel, 'through the pooler'])
    await eventually(() => heard.includes('through the pooler'))
  })
})

describe.skipIf(!hasPgbouncer())('behind PgBouncer in session mode', () => {
  test('listening works, because the session is ours', async () => {
    const { url } = await testDatabase()
    const db = openDatabase({ database: await startPgbouncer(url, 'session', 8), poolSize: 2 })
    expect(await pathOf(db)).toBe('pooled')
    const { listener, heard } = listen(db)
    await listener.start()
    await eventually(() => listener.mode === 'listening')
    await db.query('select pg_notify($1::text, $2::text)', [db.schemaName.channel, 'hello'])
    await eventually(() => heard.includes('hello'))
  })
})

test('without a pooler the path is direct', async () => {
  const { url } = await testDatabase()
  expect(await pathOf(openDatabase({ database: url }))).toBe('direct')
})
