import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createDocumentWriter, type DocumentWrite, keepSearch } from '../../src/search/index.ts'
import { SERVERS } from '../log/support/open-log.ts'
import { connect, openDatabase } from '../support/database.ts'
import { contentOf, openSearch, remove, upsert } from './support.ts'

/** What an index must hold: for each document the write with the highest position. */
function modelOf(writes: readonly DocumentWrite[]): Record<string, [bigint, unknown]> {
  const newest = new Map<string, DocumentWrite>()
  for (const write of writes) {
    if ((newest.get(write.id)?.position ?? -1n) < write.position) newest.set(write.id, write)
  }
  const kept = [...newest.values()].filter(({ document }) => document !== null)
  return Object.fromEntries(kept.map(({ id, position, document }) => [id, [position, document]]))
}

/** Positions are the places in the list; the second list says in which order, and how many together, they arrive. */
const anyHistory = fc
  .array(fc.record({ id: fc.integer({ min: 0, max: 4 }), deletes: fc.boolean() }), { minLength: 1, maxLength: 30 })
  .map((steps) =>
    steps.map(({ id, deletes }, n) =>
      deletes ? remove(n + 1, { id: `${id}` }) : upsert(n + 1, { name: `state ${n}` }, { id: `${id}` }),
    ),
  )
  .chain((writes) => {
    const arrival = fc.shuffledSubarray([...writes, ...writes], { minLength: writes.length })
    return fc.record({
      writes: fc.constant(writes),
      // Each at least once, some again.
      arriving: arrival.map((some) => [...some, ...writes.filter((one) => !some.includes(one))]),
      together: fc.integer({ min: 1, max: 8 }),
    })
  })

describe.each(SERVERS)('documents on Postgres $major', ({ major }) => {
  it('end up the same in whatever order, batches and repetitions their writes arrive', async () => {
    const { db, writer } = await openSearch({ major })
    let runs = 0
    await fc.assert(
      fc.asyncProperty(anyHistory, async ({ writes, arriving, together }) => {
        const index = `run-${++runs}`
        const left = arriving.map((one) => ({ ...one, index }))
        while (left.length > 0) await Promise.all(left.splice(0, together).map((one) => writer.write(one)))
        expect(await contentOf(db, index)).toEqual(modelOf(writes))
      }),
      { numRuns: 50 },
    )
  })
})

describe('a write', () => {
  it('says whether it was written or came too late', async () => {
    const { writer } = await openSearch()
    expect(await writer.write(upsert(5, { name: 'new' }))).toBe('written')
    expect(await writer.write(upsert(3, { name: 'old' }))).toBe('superseded')
    expect(await writer.write(upsert(5, { name: 'new' }))).toBe('written')
    const together = await Promise.all([7, 9, 8].map((position) => writer.write(upsert(position, { name: 'x' }))))
    expect(together).toEqual(['superseded', 'written', 'superseded'])
  })

  it('of an older event does not bring back what a newer one deleted, even if the document never was', async () => {
    const { db, writer } = await openSearch()
    expect(await writer.write(remove(5))).toBe('written')
    expect(await writer.write(upsert(4, { name: 'late' }))).toBe('superseded')
    expect(await contentOf(db)).toEqual({})
    expect(await writer.write(upsert(6, { name: 'again' }))).toBe('written')
    expect(await contentOf(db)).toEqual({ 1: [6n, { name: 'again' }] })
  })

  it('that Postgres cannot take fails alone', async () => {
    const { db, writer } = await openSearch()
    const writes = [
      upsert(1, { name: 'a' }, { id: 'a' }),
      { ...upsert(2, { name: 'b' }, { id: 'b' }), json: '{"name":"\\u0000"}' },
      upsert(1, { name: 'older b' }, { id: 'b' }),
      upsert(3, { name: 'c' }, { id: 'c' }),
      upsert(4, { name: 'd' }, { id: 'd', index: 'other', language: 'klingon' }),
    ]
    const settled = await Promise.allSettled(writes.map((one) => writer.write(one)))
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected'])
    expect(await contentOf(db)).toMatchObject({ a: {}, b: [1n, { name: 'older b' }], c: {} })
  })

  it('of a document as long and as odd as can be is taken', async () => {
    const { writer, search } = await openSearch()
    const texts = [
      Array.from({ length: 200_000 }, (_, n) => n.toString(36)).join(' '),
      Array.from({ length: 100_000 }, (_, n) => String.fromCodePoint(0x4e00 + (n % 20_000))).join(' '),
      Array.from({ length: 60_000 }, (_, n) => `a${n}-b${n}`).join('-'),
      Array.from({ length: 20_000 }, (_, n) => `http://h${n}.example.com/p${n}?q=${n}`).join(' '),
      'x'.repeat(500_000),
      '😀'.repeat(100_000),
    ]
    for (const [n, text] of texts.entries()) {
      expect(await writer.write(upsert(n + 1, { title: 'odd', text }, { id: `${n}` }))).toBe('written')
    }
    expect((await search.query('products', 'odd')).hits).toHaveLength(texts.length)
  })

  it('meets others of the same documents from several processes, and the newest wins', async () => {
    const { db, url, writer } = await openSearch()
    const others = [1, 2, 3].map(() => createDocumentWriter(openDatabase({ database: url })))
    const writers = [writer, ...others]
    const writes = Array.from({ length: 2_000 }, (_, n) =>
      n % 7 === 0 ? remove(n + 1, { id: `${n % 20}` }) : upsert(n + 1, { n: `${n}` }, { id: `${n % 20}` }),
    )
    // 1,237 has no factor in common with 2,000: every write once, far from its neighbours.
    const arriving = writes.map((_, n) => writes[(n * 1_237) % writes.length]!)
    await Promise.all(arriving.map((one, n) => writers[n % writers.length]!.write(one)))
    expect(await contentOf(db)).toEqual(modelOf(writes))
  })
})

describe('upkeep', () => {
  it('forgets tombstones after seven days, and what is in no generation', async () => {
    const { db, url, writer } = await openSearch()
    const sql = await connect(url)
    await Promise.all([writer.write(remove(1, { id: 'old' })), writer.write(remove(2, { id: 'young' }))])
    await writer.write(upsert(3, { name: 'kept' }, { id: 'kept' }))
    await sql.query(
      `update aftercommit.search_documents set written_at = now() - interval '8 days' where id <> 'young'`,
    )
    await sql.query(`insert into aftercommit.search_documents (index_name, generation, tenant, id, position, deleted, document)
                     select 'products', g, '', 'stray', 1, false, '{}' from generate_series(0, 5) g where g <> 1`)
    await keepSearch(db)
    const { rows } = await sql.query(`select id from aftercommit.search_documents order by id`)
    expect(rows.map(({ id }) => id)).toEqual(['kept', 'young'])
  })
})
