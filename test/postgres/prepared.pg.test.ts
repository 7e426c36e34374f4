import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/postgres/index.ts'
import { openDatabase, openTestDatabase, testDatabase } from '../support/database.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'

const TEXT = 'select ($1::text)::integer + 1 as next'

const ask = async (db: Database, n: number) => {
  const { rows } = await db.query<{ next: number }>(TEXT, [n], { repeated: true })
  return rows[0]!.next
}

const preparedTexts = async (db: Database) => {
  const { rows } = await db.query<{ statement: string }>('select statement from pg_prepared_statements')
  return rows.map(({ statement }) => statement)
}

describe.each([18, 14] as const)('a statement that is repeated, on PostgreSQL %i', (major) => {
  test('is prepared once per connection, and another is not', async () => {
    const { db } = await openTestDatabase({ major, poolSize: 1 })
    expect([await ask(db, 1), await ask(db, 2), await ask(db, 3)]).toEqual([2, 3, 4])
    await db.query('select $1::text as said', ['hello'])
    expect(await preparedTexts(db)).toEqual([TEXT])
  })

  test.each(['discard all', 'deallocate all'])('goes on after %s', async (forget) => {
    const { db } = await openTestDatabase({ major, poolSize: 1 })
    expect(await ask(db, 1)).toBe(2)
    await db.query(forget)
    expect([await ask(db, 5), await ask(db, 6)]).toEqual([6, 7])
    expect(db.stats().made).toBe(1)
  })

  test('goes on after its result has changed', async () => {
    const { db } = await openTestDatabase({ major, poolSize: 1 })
    await db.query('create table notes (id integer)')
    await db.query('insert into notes values (1)')
    const read = async () => (await db.query('select * from notes', [], { repeated: true })).rows
    expect(await read()).toEqual([{ id: 1 }])
    await db.query('alter table notes add column body text')
    expect(await read()).toEqual([{ id: 1, body: null }])
  })

  test('fails like any other, and only once', async () => {
    const { db } = await openTestDatabase({ major, poolSize: 1 })
    await db.query('create sequence tries')
    const fail = () => db.query(`select nextval('tries') / ($1::text)::integer as quotient`, [0], { repeated: true })
    await expect(fail()).rejects.toMatchObject({ code: '22012' })
    await expect(fail()).rejects.toMatchObject({ code: '22012' })
    const { rows } = await db.query('select last_value::integer as tries from tries')
    expect(rows).toEqual([{ tries: 2 }])
  })
})

describe.skipIf(!hasPgbouncer())('behind PgBouncer in transaction mode', () => {
  test('a statement that is repeated is never prepared', async () => {
    const { url } = await testDatabase()
    const pooled = openDatabase({ database: await startPgbouncer(url, 'transaction', 1) })
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => ask(pooled, n)))
    expect(answers).toEqual([2, 3, 4, 5, 6, 7])
    expect(await preparedTexts(pooled)).toEqual([])
  })
})
