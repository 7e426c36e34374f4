import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SERVERS } from '../log/support/open-log.ts'
import { openSearch, remove, upsert } from './support.ts'

async function shop(
  documents: Record<string, Record<string, unknown>>,
  options: { major?: 18 | 14; language?: string } = {},
) {
  const { language = 'simple', ...server } = options
  const opened = await openSearch(server)
  const writes = Object.entries(documents).map(([id, document], n) => upsert(n + 1, document, { id, language }))
  await Promise.all(writes.map((one) => opened.writer.write(one)))
  const find = async (text: string, words = {}) =>
    (await opened.search.query('products', text, words)).hits.map(({ id }) => id)
  return { ...opened, find }
}

const LAMPS = {
  desk: { name: 'Desk lamp', text: 'A lamp for reading', tags: ['light', 'office'] },
  floor: { name: 'Tall stand', text: 'A floor lamp', maker: { name: 'Lumen & Sons' } },
  chair: { name: 'Office chair', text: 'Stands beside a desk' },
}

describe.each(SERVERS)('searching on Postgres $major', ({ major }) => {
  it('finds words anywhere in a document, those in its name first', async () => {
    const { find } = await shop(LAMPS, { major })
    expect(await find('lamp')).toEqual(['desk', 'floor'])
    expect(await find('office')).toEqual(['chair', 'desk'])
    expect(await find('lumen')).toEqual(['floor'])
    expect(await find('sofa')).toEqual([])
  })

  it('understands what people type: several words, phrases, minus, or, and a last word that is not finished', async () => {
    const { find } = await shop(LAMPS, { major })
    expect(await find('desk lamp')).toEqual(['desk'])
    expect(await find('"floor lamp"')).toEqual(['floor'])
    expect(await find('"lamp floor"')).toEqual([])
    expect(await find('desk -chair')).toEqual(['desk'])
    expect((await find('floor or chair')).sort()).toEqual(['chair', 'floor'])
    expect(await find('des')).toEqual(['desk', 'chair'])
    expect(await find('office cha')).toEqual(['chair'])
    expect((await find('floor or cha')).sort()).toEqual(['chair', 'floor'])
    expect(await find('cha office')).toEqual([])
    expect(await find('"des')).toEqual([])
    expect((await find('lamp -des')).sort()).toEqual(['desk', 'floor'])
  })

  it('is safe for any text', async () => {
    const { search } = await shop(LAMPS, { major })
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc
        .array(
          fc.constantFrom(
            `'`,
            `''`,
            '"',
            ':*',
            '&',
            '|',
            '!',
            '<->',
            '(',
            ')',
            '\\',
            '-',
            ' or ',
            'lamp',
            '\u0000',
            '\ud800',
            '%',
            '$1',
            '🙂',
          ),
          { maxLength: 12 },
        )
        .map((parts) => parts.join('')),
    )
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        await search.query('products', text, { highlight: true })
      }),
      { numRuns: 200 },
    )
    for (const text of ['', ' ', 'x'.repeat(100_000), `${'a '.repeat(5_000)}`, '('.repeat(2_000), 'ö'.repeat(3_000)]) {
      await search.query('products', text)
    }
  })

  it('shows where it was found, with nothing in it but text and marks', async () => {
    const { search } = await shop(
      {
        evil: {
          name: `Ordinary < "text" & lamp, it's <b onclick="x()">here</b> </mark><script>y()</script> \ue000x\ue001`,
        },
      },
      { major },
    )
    const { hits } = await search.query('products', 'lam', { highlight: true })
    const { highlight } = hits[0]!
    expect(highlight).toContain('<mark>lamp</mark>')
    expect(highlight).toContain('Ordinary &lt; &quot;text&quot; &amp; <mark>lamp</mark>, it&#39;s')
    expect(highlight!.replaceAll('<mark>', '').replaceAll('</mark>', '')).not.toMatch(/[<>"'\ue000\ue001]/)
    expect(highlight!.split('<mark>').length).toBe(highlight!.split('</mark>').length)
    expect((await search.query('products', 'lam')).hits[0]!.highlight).toBeNull()
  })
})

describe('a query', () => {
  it('uses the language of the index, or another for once', async () => {
    const { find, search } = await shop({ a: { name: 'Running shoes' } }, { language: 'english' })
    expect(await find('run')).toEqual(['a'])
    expect(await find('shoe')).toEqual(['a'])
    expect(await find('running', { language: 'simple' })).toEqual([])
    for (const language of ['klingon', '3748', `simple'; drop table x`]) {
      await expect(search.query('products', 'x', { language })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    }
  })

  it('keeps to a tenant, and the same id of two tenants is two documents', async () => {
    const { writer, search } = await openSearch()
    await writer.write(upsert(1, { name: 'Lamp of A' }, { tenant: 'a' }))
    await writer.write(upsert(2, { name: 'Lamp of B' }, { tenant: 'b' }))
    await writer.write(remove(3, { tenant: 'b', id: 'other' }))
    const of = async (tenant?: string) =>
      (await search.query('products', 'lamp', { tenant })).hits.map((hit) => hit.tenant)
    expect(await of('a')).toEqual(['a'])
    expect(await of('c')).toEqual([])
    expect((await of()).sort()).toEqual(['a', 'b'])
    expect(await search.get('products', '1', { tenant: 'b' })).toMatchObject({ document: { name: 'Lamp of B' } })
    expect(await search.get('products', '1')).toBeUndefined()
  })

  it('pages through hits, and refuses numbers that are none', async () => {
    const { find, search } = await shop(Object.fromEntries([1, 2, 3, 4].map((n) => [`${n}`, { name: 'lamp' }])))
    expect(await find('lamp', { limit: 3 })).toEqual(['4', '3', '2'])
    expect(await find('lamp', { limit: 3, offset: 3 })).toEqual(['1'])
    for (const options of [{ limit: 0 }, { limit: 1.5 }, { limit: 1_001 }, { offset: -1 }]) {
      await expect(search.query('products', 'x', options)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    }
  })

  it('gives documents back digit for digit, whatever their keys are called', async () => {
    const { writer, search } = await openSearch()
    const json = '{"name":"lamp","__proto__":{"polluted":true},"constructor":1,"total":9007199254740993}'
    await writer.write({ ...upsert(1, { name: 'lamp' }), json })
    const { document } = (await search.query('products', 'lamp')).hits[0]!
    expect(document.total).toBe(9007199254740993n)
    expect(Object.keys(document).sort()).toEqual(['__proto__', 'constructor', 'name', 'total'])
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('of an index that does not exist finds nothing', async () => {
    const { search } = await openSearch()
    expect(await search.query('nothing', 'x')).toEqual({ hits: [] })
    expect(await search.get('nothing', 'x\u0000')).toBeUndefined()
    expect(await search.remove('nothing', 'x')).toBe(false)
    expect(await search.removeIndex('nothing')).toBe(false)
  })
})

describe('taking away', () => {
  it('a document lasts until a new event', async () => {
    const { writer, search, db } = await openSearch()
    await writer.write(upsert(1, { name: 'lamp' }))
    await db.query(`select ${db.schema}.emit('lamp.lit', 'lamp', '1', '{}'::jsonb) from generate_series(1, 5)`)
    expect(await search.remove('products', '1')).toBe(true)
    expect(await search.remove('products', '1')).toBe(false)
    expect(await writer.write(upsert(4, { name: 'lamp' }))).toBe('superseded')
    expect(await search.get('products', '1')).toBeUndefined()
    expect(await writer.write(upsert(6, { name: 'lamp' }))).toBe('written')
    expect(await search.get('products', '1')).toMatchObject({ id: '1', tenant: null, position: 6n })
  })

  it('an index leaves nothing, and the next event makes it anew', async () => {
    const { writer, search, db } = await openSearch()
    await Promise.all([
      writer.write(upsert(1, { name: 'lamp' })),
      writer.write(upsert(2, { name: 'x' }, { index: 'other' })),
    ])
    expect((await search.indexes()).map(({ name, documents }) => [name, documents])).toEqual([
      ['other', 1],
      ['products', 1],
    ])
    expect(await search.removeIndex('products')).toBe(true)
    expect((await search.indexes()).map(({ name }) => name)).toEqual(['other'])
    expect((await db.query(`select from ${db.schema}.search_documents`)).rowCount).toBe(1)
    expect(await writer.write(upsert(1, { name: 'lamp' }))).toBe('written')
    expect((await search.query('products', 'lamp')).hits).toHaveLength(1)
  })
})
