import { describe, expect, it } from 'vitest'
import { OutcomeUnknownError } from '../../src/postgres/index.ts'
import { connect, openDatabase, openTestDatabase } from '../support/database.ts'
import { createProxy } from '../support/proxy.ts'

const read = { text: 'select $1::text as word, pg_backend_pid() as pid', values: ['hello'] }
const insert = (value: string) => ({ text: 'insert into words values ($1) returning word', values: [value] })

async function openWords() {
  const { db, url } = await openTestDatabase({ poolSize: 1 })
  await db.query('create table words (word text primary key)')
  const sql = await connect(url)
  const words = async () => (await sql.query('select word from words order by word')).rows.map(({ word }) => word)
  return { db, url, sql, words }
}

describe('a transaction in two round trips', () => {
  it('reads, decides and writes, and answers what was written', async () => {
    const { db, words } = await openWords()
    const written = await db.twoTrips<{ word: string }, { word: string }>(read, ({ word }) => insert(`${word} world`))
    expect(written).toEqual({ word: 'hello world' })
    expect(await words()).toEqual(['hello world'])
  })

  it('is one transaction: what is read stays locked until it has ended', async () => {
    const { db, sql } = await openWords()
    await sql.query(`insert into words values ('mine')`)
    const lock = { text: 'select word from words where word = $1 for update', values: ['mine'] }
    await db.twoTrips(lock, async () => {
      await expect(sql.query(`select from words for update nowait`)).rejects.toMatchObject({ code: '55P03' })
      return insert('yours')
    })
    expect((await sql.query(`select from words for update nowait`)).rowCount).toBe(2)
  })

  it('writes nothing when there is nothing to write, when deciding fails, and when a statement fails', async () => {
    const { db, words } = await openWords()
    expect(await db.twoTrips(read, () => undefined)).toBeUndefined()
    await expect(
      db.twoTrips(read, () => {
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    const writesAndFails = { text: `with w as (insert into words values ('x')) select 1 / $1::int`, values: [0] }
    await expect(db.twoTrips(read, () => writesAndFails)).rejects.toMatchObject({ code: '22012' })
    await expect(db.twoTrips(writesAndFails, () => insert('y'))).rejects.toMatchObject({ code: '22012' })
    expect(await words()).toEqual([])
    // The one connection of the pool is fit for the next.
    await db.twoTrips(read, () => insert('after all'))
    expect(await words()).toEqual(['after all'])
  })

  it('whose answer is lost has an unknown outcome', async () => {
    const { url, words } = await openWords()
    const proxy = await createProxy(url)
    const db = openDatabase({ database: proxy.url, poolSize: 1 })
    const lost = db.twoTrips(read, () => {
      proxy.cutAfter(0)
      return insert('perhaps')
    })
    await expect(lost).rejects.toThrow(OutcomeUnknownError)
    proxy.pass()
    await db.twoTrips(read, () => insert('surely'))
    expect(await words()).toContain('surely')
  })

  it('takes null, text with quotes and backslashes, numbers and booleans', async () => {
    const { db } = await openWords()
    const echo = {
      text: 'select $1::text as a, $2::text as b, $3::int as c, $4::boolean as d',
      values: [null, `'\\"`, 7, true],
    }
    expect(await db.twoTrips(read, () => echo)).toEqual({ a: null, b: `'\\"`, c: 7, d: true })
  })
})
