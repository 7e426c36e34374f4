/**
 * Documents written into the search index of Postgres by an observer, from events that are there; against the bare
 * upsert that a programmer would write: the same rows into a table like ours, one statement per document, as many under
 * way at a time. The variants take turns.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAftercommit } from 'aftercommit'
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, median, perSecond } from '../measure.mjs'

const DOCUMENTS = 10_000
/** What an observer has under way unless told. */
const CONCURRENCY = 50

const document = {
  name: 'Desk lamp with a long arm',
  text: 'A lamp for reading in the evening. Turns, bends, and stands wherever it is put. Comes with a bulb.',
  maker: { name: 'Lumen & Sons', city: 'Bruges' },
  tags: ['light', 'office', 'reading'],
  price: 4990,
}

export async function run({ url, rounds }) {
  const variants = {
    problems: await openObserver(url, 'bench_search_problems', 'problems'),
    all: await openObserver(url, 'bench_search_all', 'all'),
    bare: await openBare(url),
  }
  const rates = { problems: [], all: [], bare: [] }
  for (let round = -1; round < rounds; round++) {
    for (const [name, { prepare, write }] of Object.entries(variants)) {
      await prepare()
      const began = performance.now()
      await write()
      if (round >= 0) rates[name].push((DOCUMENTS * 1_000) / (performance.now() - began))
    }
  }
  for (const { end } of Object.values(variants)) await end()
  const [some, every, bare] = [median(rates.problems), median(rates.all), median(rates.bare)]
  return {
    title: `search: ${DOCUMENTS.toLocaleString('en')} documents into Postgres, ${CONCURRENCY} under way`,
    figures: [
      ['search action, record = "problems"', perSecond(some)],
      ['search action, record = "all"', perSecond(every)],
      ['bare upsert', perSecond(bare)],
    ],
    goals: [atLeast('"problems" / bare upsert', some / bare, 0.5), atLeast('"all" / bare upsert', every / bare, 0.5)],
  }
}

async function openObserver(url, schema, record) {
  const ac = createAftercommit({ database: url, schema, runtime: { record, maxConcurrency: CONCURRENCY } })
  await ac.migrate()
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-bench-search-'))
  const file = join(folder, 'aftercommit.toml')
  writeFileSync(
    file,
    `[providers.search]\nkind = "postgres"\n
     [observers.products]\non = "product.updated"\nactions = [{ type = "search", index = "products" }]\n`,
  )
  await ac.observers.loadFile(file)
  await ac.start()
  const observers = ac.subscriptions.get('observers')
  const { clients, end } = await connect(url, 1)
  let head = 0n
  return {
    async prepare() {
      await observers.pause()
      for (let sent = 0; sent < DOCUMENTS; sent += 1_000) {
        const batch = () => ({
          type: 'product.updated',
          aggregate: { type: 'product', id: uuidv7() },
          payload: document,
        })
        const emitted = await ac.emitNow(clients[0], Array.from({ length: 1_000 }, batch))
        head = emitted.at(-1).position
      }
    },
    async write() {
      await observers.resume()
      while ((await observers.status()).position < head) await new Promise((resolve) => setTimeout(resolve, 5))
    },
    async end() {
      await ac.stop()
      rmSync(folder, { recursive: true })
      await clients[0].query(`drop schema ${schema} cascade`)
      await end()
    },
  }
}

async function openBare(url) {
  const { clients, end } = await connect(url, CONCURRENCY)
  await clients[0].query(`
    create schema bench_search_bare;
    create table bench_search_bare.documents (
      index_name text, tenant text, id text, position bigint, deleted boolean, document jsonb, words tsvector,
      written_at timestamptz default clock_timestamp(), primary key (index_name, tenant, id));
    create index on bench_search_bare.documents using gin (words)`)
  const upsert = {
    name: 'upsert',
    text: `insert into bench_search_bare.documents as kept
                  (index_name, tenant, id, position, deleted, document, words)
           values ($1, '', $2, $3, false, $4,
                   setweight(to_tsvector('simple', $5), 'A') || setweight(to_tsvector('simple', $6), 'B')
                   || setweight(to_tsvector('simple', $7), 'C'))
           on conflict (index_name, tenant, id) do update
              set position = excluded.position, document = excluded.document, words = excluded.words
            where excluded.position >= kept.position`,
  }
  const json = JSON.stringify(document)
  const texts = [
    document.name,
    [document.text, ...document.tags].join('\n'),
    [document.maker.name, document.maker.city].join('\n'),
  ]
  let position = 0
  return {
    async prepare() {},
    async write() {
      let left = DOCUMENTS
      const writer = async (client) => {
        while (left-- > 0) await client.query({ ...upsert, values: ['products', uuidv7(), ++position, json, ...texts] })
      }
      await Promise.all(clients.map(writer))
    },
    async end() {
      await clients[0].query('drop schema bench_search_bare cascade')
      await end()
    },
  }
}
