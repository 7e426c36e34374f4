import { describe, expect, it } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { beginRebuild, keepSearch } from '../../src/search/index.ts'
import { openSearch, upsert } from '../search/support.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { fakeElasticsearch } from './support/fake-elasticsearch.ts'
import { POSTGRES, PRODUCTS, rulesFile } from './support/search-rules.ts'

type Step = readonly [id: string, name: string | null]

async function emitAll(ac: Aftercommit, steps: readonly Step[]): Promise<void> {
  await ac.transaction((tx) =>
    tx.emit(
      steps.map(([id, name]) => ({
        type: name === null ? 'product.deleted' : 'product.updated',
        aggregate: { type: 'product', id },
        payload: name === null ? {} : { name },
      })),
    ),
  )
}

async function openShop(steps: readonly Step[], rules = PRODUCTS) {
  const opened = await openSubscriptions()
  await emitAll(opened.ac, steps)
  await opened.ac.observers.loadFile(rulesFile(POSTGRES, rules))
  const names = async (index = 'products') => {
    const { rows } = await opened.sql.query(
      `select d.id, d.document->>'name' as name
         from aftercommit.search_indexes i
         join aftercommit.search_documents d on d.index_name = i.name and d.generation = i.generation
        where i.name = $1 and not d.deleted order by d.id`,
      [index],
    )
    return Object.fromEntries(rows.map(({ id, name }) => [id, name]))
  }
  return { ...opened, names }
}

describe('a reindex', () => {
  it('makes an index of history that was there before the rules, by their conditions', async () => {
    const steps: Step[] = [
      ['1', 'lamp'],
      ['2', 'chair'],
      ['1', 'Lamp'],
      ['3', 'sofa'],
      ['3', null],
      ['4', 'hidden'],
    ]
    const rules = PRODUCTS.replace('entity =', `condition = "event.kind == 'deleted' || name != 'hidden'"\nentity =`)
    const { ac, names } = await openShop(steps, rules)
    const progress: [bigint, bigint][] = []
    const report = await ac.search.reindex({ onProgress: (done, of) => progress.push([done, of]) })
    expect(report).toMatchObject({
      ok: true,
      events: 6,
      indexes: [{ index: 'products', upserts: 4, deletes: 1, carried: 0, outcome: 'replaced' }],
    })
    expect(await names()).toEqual({ 1: 'Lamp', 2: 'chair' })
    expect(progress.at(-1)![0]).toBe(progress.at(-1)![1])
  })

  it('drops what the rules no longer write, and uses the language of the file', async () => {
    const { ac, names, another } = await openShop([
      ['1', 'Running shoes'],
      ['2', 'old things'],
    ])
    await ac.search.reindex()
    expect(Object.keys(await names())).toEqual(['1', '2'])
    const next = another()
    const rules = PRODUCTS.replace('entity =', `condition = "name.startsWith('Running')"\nentity =`)
    await next.observers.loadFile(rulesFile(POSTGRES, 'language = "english"', rules))
    await next.search.reindex()
    expect(await names()).toEqual({ 1: 'Running shoes' })
    expect((await next.search.query('products', 'shoe')).hits).toHaveLength(1)
    expect(await next.search.indexes()).toMatchObject([{ language: 'english', documents: 1, isBuilding: false }])
  })

  it('since a time keeps what was written before as it is', async () => {
    const { ac, sql, names } = await openShop([
      ['1', 'one'],
      ['2', 'two'],
      ['3', 'three'],
      ['3', null],
    ])
    await ac.search.reindex()
    await sql.query(`update aftercommit.search_documents set document = '{"name":"kept"}' where id = '1'`)
    const { rows } = await sql.query(`select clock_timestamp() as now`)
    await emitAll(ac, [
      ['2', 'two again'],
      ['4', 'four'],
    ])
    const report = await ac.search.reindex({ since: rows[0].now })
    expect(report).toMatchObject({ events: 2, indexes: [{ upserts: 2, carried: 2, outcome: 'replaced' }] })
    expect(await names()).toEqual({ 1: 'kept', 2: 'two again', 4: 'four' })
  })

  it('keeps documents whose events retention has let go', async () => {
    const { ac, sql, names } = await openShop([
      ['1', 'one'],
      ['2', 'two'],
    ])
    await ac.search.reindex()
    await emitAll(ac, [['2', 'two again']])
    await sql.query(`update aftercommit.log_state set kept_from = 3`)
    const report = await ac.search.reindex()
    expect(report.indexes).toMatchObject([{ upserts: 1, carried: 1 }])
    expect(await names()).toEqual({ 1: 'one', 2: 'two again' })
  })

  it('while events go on misses none, and newer ones win', async () => {
    const history = Array.from({ length: 3_000 }, (_, n): Step => [`${n % 100}`, `old ${n}`])
    const { ac, another, names } = await openShop(history)
    await ac.start()
    const writer = another()
    let rounds = 0
    let isOver = false
    const writing = (async () => {
      for (; !isOver || rounds < 5; rounds++) {
        await emitAll(writer, [
          ['7', `new ${rounds}`],
          ['8', rounds % 2 === 0 ? null : `new ${rounds}`],
          [`n${rounds}`, 'x'],
        ])
      }
    })()
    for (let n = 0; n < 5; n++) await ac.search.reindex()
    isOver = true
    await writing
    await emitAll(writer, [['8', null]])
    const now = await eventually(async () => {
      const seen = await names()
      expect(Object.keys(seen)).toHaveLength(99 + rounds)
      expect(seen['7']).toBe(`new ${rounds - 1}`)
      expect(seen).not.toHaveProperty('8')
      return seen
    })
    for (let n = 0; n < 100; n++) if (n !== 7 && n !== 8) expect(now[n]).toBe(`old ${2_900 + n}`)
  })

  it('of some indexes leaves the others, and one that no rule writes to is refused', async () => {
    const more = PRODUCTS.replace('products]', 'names]').replace('"products"', '"names"')
    const { ac, names } = await openShop([['1', 'one']], PRODUCTS + more)
    await ac.search.reindex({ indexes: ['names'] })
    expect(await names('names')).toEqual({ 1: 'one' })
    expect(await names()).toEqual({})
    await expect(ac.search.reindex({ indexes: ['nams'] })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      message: expect.stringContaining('"names"'),
    })
    await expect(ac.search.reindex({ since: 'never' })).rejects.toMatchObject({ code: expect.stringContaining('BAD') })
  })

  it('follows names that only events know, and leaves indexes that are not of these rules', async () => {
    const rules = PRODUCTS.replace('index = "products"', 'index = "shop-{{ name | lower }}"')
    const { ac, names, sql } = await openShop(
      [
        ['1', 'A'],
        ['2', 'B'],
      ],
      rules,
    )
    await sql.query(`insert into aftercommit.search_indexes (name, language) values ('other', 'simple'), ('shop-a', 'simple');
      insert into aftercommit.search_documents (index_name, generation, tenant, id, position, deleted, document)
      values ('other', 1, '', 'x', 1, false, '{"name":"theirs"}'), ('shop-a', 1, '', 'gone', 1, false, '{}')`)
    const report = await ac.search.reindex()
    expect(report.indexes.map(({ index, outcome }) => [index, outcome])).toEqual([
      ['other', 'untouched'],
      ['shop-a', 'replaced'],
      ['shop-b', 'written'],
    ])
    expect([await names('other'), await names('shop-a'), await names('shop-b')]).toEqual([
      { x: 'theirs' },
      { 1: 'A' },
      { 2: 'B' },
    ])
  })

  it('tells of events that no document could be made of, and goes on', async () => {
    const rules = PRODUCTS.replace('index = "products"', 'index = "products", id = "{{ name | default(\'\') }}"')
    const { ac, names } = await openShop(
      [
        ['1', 'one'],
        ['2', null],
        ['3', 'three'],
      ],
      rules,
    )
    const report = await ac.search.reindex()
    expect(report).toMatchObject({ ok: false, failures: 1, problems: [{ observer: 'products', code: 'OB003' }] })
    expect(await names()).toEqual({ one: 'one', three: 'three' })
  })

  it('that is ended in the middle leaves what was in use, and leaves nothing behind', async () => {
    const { ac, sql, names } = await openShop(Array.from({ length: 1_200 }, (_, n): Step => [`${n}`, 'new']))
    await sql.query(`insert into aftercommit.search_indexes (name, language) values ('products', 'simple');
      insert into aftercommit.search_documents (index_name, generation, tenant, id, position, deleted, document)
      values ('products', 1, '', '0', 0, false, '{"name":"old"}')`)
    const stop = new AbortController()
    const ending = ac.search.reindex({ signal: stop.signal, onProgress: () => stop.abort(new Error('enough')) })
    await expect(ending).rejects.toThrow('enough')
    expect(await names()).toEqual({ 0: 'old' })
    const { rows } = await sql.query(`select count(*)::int as count from aftercommit.search_documents`)
    expect(rows[0].count).toBe(1)
    expect(await ac.search.indexes()).toMatchObject([{ isBuilding: false }])
    await ac.search.reindex()
    expect(Object.keys(await names())).toHaveLength(1_200)
  })

  it('without a rule that searches is refused', async () => {
    const { ac } = await openSubscriptions()
    await expect(ac.search.reindex()).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })

  it('of another engine writes in place by position, and tells of what it refuses', async () => {
    const engine = await fakeElasticsearch()
    const { ac } = await openSubscriptions()
    await emitAll(ac, [
      ['1', 'one'],
      ['2', 'two'],
      ['1', 'One'],
      ['2', null],
    ])
    await ac.transaction((tx) =>
      tx.emit('product.updated', { aggregate: { type: 'product', id: '3' }, payload: { total: 'much' } }),
    )
    engine.troubles.push((response) => response.writeHead(503).end())
    await ac.observers.loadFile(
      rulesFile(`[providers.search]\nkind = "elasticsearch"\nurl = "${engine.url}"`, PRODUCTS),
    )
    const report = await ac.search.reindex()
    expect(report).toMatchObject({
      ok: false,
      indexes: [{ upserts: 3, deletes: 1, outcome: 'written' }],
      problems: [{ code: 'OB004' }],
    })
    expect(Object.keys(engine.documents())).toEqual(['products/1'])
    expect(engine.documents()['products/1']).toMatchObject({ source: { name: 'One' } })
  })
})

describe('two reindexes of one index', () => {
  it('the later one wins, the earlier one ends and changes nothing', async () => {
    const { db, writer } = await openSearch()
    await writer.write(upsert(1, { name: 'old' }))
    const options = { database: db, indexes: ['products'], all: false, language: 'simple' }
    const first = await beginRebuild(options)
    await first.write([upsert(1, { name: 'of the first' })])
    const second = await beginRebuild(options)
    await expect(first.write([upsert(2, { name: 'x' }, { id: '2' })])).rejects.toMatchObject({ code: 'BAD_STATE' })
    await expect(first.use('products')).rejects.toMatchObject({ code: 'BAD_STATE' })
    await first.end()
    await second.write([upsert(1, { name: 'of the second' })])
    await second.use('products')
    await second.end()
    const { rows } = await db.query<{ name: string }>(
      `select document->>'name' as name from ${db.schema}.search_documents`,
    )
    expect(rows).toEqual([{ name: 'of the second' }])
  })

  it('one that was killed is given up by upkeep after an hour without a sign of life', async () => {
    const { db, url, writer, search } = await openSearch()
    await writer.write(upsert(1, { name: 'old' }))
    const killed = await beginRebuild({ database: db, indexes: ['products'], all: false, language: 'simple' })
    await killed.write([upsert(1, { name: 'half' })])
    await keepSearch(db)
    expect(await search.indexes()).toMatchObject([{ isBuilding: true, documents: 1 }])
    const sql = await connect(url)
    await sql.query(`update aftercommit.search_indexes set building_seen_at = now() - interval '2 hours'`)
    await keepSearch(db)
    expect(await search.indexes()).toMatchObject([{ isBuilding: false, documents: 1 }])
    expect((await sql.query(`select from aftercommit.search_documents`)).rowCount).toBe(1)
  })
})
