import type pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { isCI } from '../../scripts/programs.mjs'
import { assertSameDatabase, classify, type Queryable, sqlstateOf, toQueryable } from '../../src/postgres/index.ts'
import { connect, openDatabase, testDatabase } from '../support/database.ts'
import { type ClientLibrary, isPrismaInstalled, LIBRARIES } from './client-libraries.ts'

const prismaIsMissing = !(await isPrismaInstalled()) && !isCI()
if (prismaIsMissing) console.warn('Prisma is not installed: its transactions are NOT tested in this run')

describe.each(Object.entries(LIBRARIES))('%s', (name, open) => {
  const skip = name === 'Prisma' && prismaIsMissing
  let url: string
  let library: ClientLibrary
  let outside: pg.Client

  beforeEach(async () => {
    if (skip) return
    url = (await testDatabase()).url
    outside = await connect(url)
    await outside.query('create table notes (id integer primary key, content jsonb, large bigint, flag boolean)')
    library = await open(url)
    onTestFinished(async () => void (await library.close()))
  })

  const insert = (tx: unknown, id: number, content = '{}') => addNote(toQueryable(tx, '"public"'), id, content)
  const count = async () => Number((await outside.query('select count(*) from notes')).rows[0].count)

  test.skipIf(skip)('a statement commits with the transaction of the library, and not before', async () => {
    await library.transaction(async (tx) => {
      await insert(tx, 1)
      expect(await count()).toBe(0)
    })
    expect(await count()).toBe(1)
  })

  test.skipIf(skip)('a statement is rolled back with the transaction of the library', async () => {
    const failing = library.transaction(async (tx) => {
      await insert(tx, 1)
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect(await count()).toBe(0)
  })

  test.skipIf(skip)('values arrive as they were sent', async () => {
    const content = JSON.stringify({ text: `it's "quoted" \\ and ünïcode`, nested: [1, null, true] })
    await library.transaction(async (tx) => {
      const db = toQueryable(tx, '"public"')
      const { rows, rowCount } = await db.query(
        `select ($1::text)::jsonb::text as content, ($2::text)::bigint::text as large, ($3::text)::boolean as flag,
                ($4::text)::integer as small, ($5::text)::jsonb::text as nothing, ($6::text)::float8 as fraction,
                $7::boolean as bare_flag`,
        [content, '9007199254740993', true, 42, null, 1.5, false],
      )
      expect(rowCount).toBe(1)
      const row = rows[0] as { content: string }
      expect({ ...row, content: JSON.parse(row.content) }).toEqual({
        content: JSON.parse(content),
        large: '9007199254740993',
        flag: true,
        small: 42,
        nothing: null,
        fraction: 1.5,
        bare_flag: false,
      })
    })
  })

  test.skipIf(skip)('changed rows are counted, with and without RETURNING', async () => {
    await library.transaction(async (tx) => {
      const db = toQueryable(tx, '"public"')
      for (const id of [1, 2, 3]) await addNote(db, id, '{}')
      const plain = await db.query('update notes set flag = true where id < ($1::text)::integer', [3])
      expect(plain).toEqual({ rows: [], rowCount: 2 })
      const returning = await db.query('delete from notes where id = ($1::text)::integer returning id', [3])
      expect(returning).toEqual({ rows: [{ id: 3 }], rowCount: 1 })
      expect(await db.query('select id from notes where id > 100')).toEqual({ rows: [], rowCount: 0 })
    })
  })

  test.skipIf(skip)('a refused statement shows its SQLSTATE, and its parameters to nobody', async () => {
    const failing = library.transaction(async (tx) => {
      await insert(tx, 1)
      await insert(tx, 1, '{"secret": "hunter2"}')
    })
    const error: Error = await failing.then(
      () => expect.fail('the second insert must fail'),
      (thrown) => thrown,
    )
    expect(sqlstateOf(error)).toBe('23505')
    expect(classify(error)).toBe('permanent')
    expect(error.message).not.toContain('hunter2')
  })

  test.skipIf(skip)('what is not a transaction works too, each statement on its own', async () => {
    await insert(library.plain, 1)
    expect(await count()).toBe(1)
  })

  test.skipIf(skip)('a transaction of another database is refused by name', async () => {
    const ours = openDatabase({ database: (await testDatabase()).url })
    await library.transaction(async (tx) => {
      const attempt = assertSameDatabase(ours, toQueryable(tx, ours.schema))
      await expect(attempt).rejects.toMatchObject({ code: 'OTHER_DATABASE' })
      await expect(attempt).rejects.toThrow(/belongs to database "ac_test_\w+".* its log in "ac_test_\w+"/)
    })
  })

  // Our own transactions share the identity of their pool.
  if (name !== 'our own transaction') {
    test.skipIf(skip)('the database is asked for its identity once, not in every transaction', async () => {
      const ours = openDatabase({ database: url })
      const cost = async (fn: (tx: unknown) => Promise<void>) => {
        const before = library.sent!()
        await library.transaction(fn)
        return library.sent!() - before
      }
      const check = async (tx: unknown) => assertSameDatabase(ours, toQueryable(tx, ours.schema))
      const [first, second, empty] = [await cost(check), await cost(check), await cost(async () => {})]
      expect(first).toBeGreaterThan(second)
      expect(second).toBe(empty)
    })
  }
})

async function addNote(db: Queryable, id: number, content: string): Promise<void> {
  await db.query(`insert into ${db.schema}.notes (id, content) values (($1::text)::integer, ($2::text)::jsonb)`, [
    id,
    content,
  ])
}
