import { describe, expect, it } from 'vitest'
import type { SearchProvider } from '../../../src/observers/action.ts'
import type { DocumentWrite, DocumentWriter } from '../../../src/search/index.ts'
import { closedPort } from '../../support/receivers.ts'
import { fakeElasticsearch } from '../support/fake-elasticsearch.ts'
import { fakeMeilisearch } from '../support/fake-meilisearch.ts'
import { failureOf, prepare, type RequestInput, requestFor } from './support.ts'

const product = { type: 'product', id: '42' }

/** Where documents would go in Postgres. */
function notebook() {
  const writes: DocumentWrite[] = []
  const documents: DocumentWriter = {
    async write(write) {
      writes.push(write)
      return 'written'
    },
    checkLanguage: async () => {},
  }
  return { writes, documents }
}

function searchWith(
  config: Record<string, unknown>,
  { documents, ...provider }: Partial<SearchProvider> & { documents?: DocumentWriter } = {},
) {
  const search = { kind: 'postgres', ...provider } as SearchProvider
  return prepare('search', config, { providers: { search }, allow: [], ...(documents && { documents }) })
}

describe('a search action', () => {
  it('upserts the payload under the id of the aggregate, and deletes with events that say so', async () => {
    const { writes, documents } = notebook()
    const action = searchWith({ index: 'products' }, { documents, language: 'german' })
    const payload = { name: 'Lampe', total: 9007199254740993n }
    const done = await action.run(
      requestFor({ type: 'product.created', aggregate: product, payload, tenant: 'acme', position: 7n }),
    )
    expect(done).toMatchObject({ actionType: 'search', success: true, message: 'upserted' })
    for (const type of ['product.deleted', 'product_deleted', 'product.deleted.v2']) {
      expect(await action.run(requestFor({ type, aggregate: product }))).toMatchObject({ message: 'deleted' })
    }
    expect(writes[0]).toMatchObject({ index: 'products', tenant: 'acme', id: '42', position: 7n, language: 'german' })
    expect(writes[0]!.json).toBe('{"name":"Lampe","total":9007199254740993}')
    expect(writes.slice(1).map(({ document, json }) => [document, json])).toEqual(Array(3).fill([null, null]))
  })

  it('takes index, id, document and what to do from what is written', async () => {
    const { writes, documents } = notebook()
    const config = {
      action: 'upsert',
      index: 'products-{{ shop }}',
      id: '{{ shop }}-{{ event.aggregate_id }}',
      document: { title: '{{ name | upper }}', price: '{{ price }}', __proto__: undefined },
    }
    const payload = { shop: 'a', name: 'lamp', price: 5 }
    await searchWith(config, { documents }).run(requestFor({ type: 'product.deleted', aggregate: product, payload }))
    expect(writes).toMatchObject([{ index: 'products-a', id: 'a-42', json: '{"title":"LAMP","price":5}' }])
  })

  it.each([
    ['no aggregate and no id', { payload: {} }, {}, '`id` has to say'],
    ['a payload that is no table', { aggregate: product, payload: [1] }, {}, '`document` has to say'],
    ['an id that is too long', { aggregate: product, payload: { x: 'x'.repeat(513) } }, { id: '{{ x }}' }, '512 bytes'],
    ['a name that is empty', { aggregate: product, payload: { x: '' } }, { index: '{{ x }}' }, 'is empty'],
  ] as [string, RequestInput, object, string][])(
    'with %s is OB003 and is not repeated',
    async (_, input, config, said) => {
      const { writes, documents } = notebook()
      const action = searchWith({ index: 'products', ...config }, { documents })
      const error = await failureOf(() => action.run(requestFor(input)))
      expect(error).toMatchObject({ code: 'OB003', transient: false })
      expect(error.message).toContain(said)
      expect(writes).toEqual([])
    },
  )

  it('can be previewed', () => {
    const action = searchWith({ index: 'products' })
    const shown = action.preview(requestFor({ aggregate: product, payload: { name: 'lamp' } }))
    expect(shown).toEqual({
      actionType: 'search',
      destination: null,
      content: { action: 'upsert', index: 'products', id: '42', document: { name: 'lamp' } },
    })
    expect(action.preview(requestFor({ type: 'product.deleted', aggregate: product })).content).toEqual({
      action: 'delete',
      index: 'products',
      id: '42',
    })
  })

  it.each([
    ['elasticsearch', 'Products', 'lower case'],
    ['opensearch', '_products', 'must not begin'],
    ['elasticsearch', 'a/../b', 'must not hold'],
    ['elasticsearch', '..', 'must not begin'],
    ['elasticsearch', '.security-7', 'a dot'],
    ['opensearch', '.opendistro_security', 'a dot'],
    ['meilisearch', 'pro ducts', 'letters, digits'],
    ['postgres', 'x'.repeat(256), '255 bytes'],
  ] as const)('for %s is refused when it is loaded with the index %j', async (kind, index, said) => {
    const url = kind === 'postgres' ? undefined : 'http://127.0.0.1:1'
    const error = await failureOf(() => searchWith({ index }, { kind, url }))
    expect(error).toMatchObject({ code: 'OB012', path: ['index'] })
    expect(error.message).toContain(said)
  })

  it('is refused without its provider, or with an address that carries secrets, which are not repeated', async () => {
    expect((await failureOf(() => prepare('search', { index: 'x' }))).message).toContain('[providers.search]')
    for (const url of ['canary', 'ftp://canary/', 'https://u:canary@x/', 'https://x/?key=canary']) {
      const error = await failureOf(() => searchWith({ index: 'x' }, { kind: 'elasticsearch', url }))
      expect(error).toMatchObject({ code: 'OB012' })
      expect(error.message).not.toContain('canary')
    }
  })
})

describe.each(['elasticsearch', 'opensearch'] as const)('%s', (kind) => {
  const KEYS = { elasticsearch: `ApiKey ${btoa('id:canary-key')}`, opensearch: `Basic ${btoa('id:canary-key')}` }

  async function open() {
    const engine = await fakeElasticsearch(KEYS[kind])
    const provider = { kind, url: { reveal: () => `${engine.url}/` }, apiKey: { reveal: () => 'id:canary-key' } }
    return { engine, action: searchWith({ index: 'products' }, provider) }
  }

  const at = (position: bigint, type = 'product.updated', payload: object = { name: `at ${position}` }) =>
    requestFor({ type, aggregate: product, position, payload })

  it('keeps the newest whatever arrives last; an older one is superseded, which is a success', async () => {
    const { engine, action } = await open()
    expect(await action.run(at(5n))).toMatchObject({ message: 'upserted', response: { status: 201 } })
    expect(await action.run(at(3n))).toMatchObject({ success: true, message: expect.stringContaining('superseded') })
    expect(await action.run(at(5n))).toMatchObject({ message: 'upserted' })
    expect(engine.documents()).toEqual({ 'products/42': { version: 5n, source: { name: 'at 5' } } })
    expect(action.destination).toBe(`search ${engine.url}`)
  })

  it('keeps a document deleted while it remembers its version, and takes one that is not there for deleted', async () => {
    const { engine, action } = await open()
    expect(await action.run(at(5n, 'product.deleted'))).toMatchObject({ message: 'deleted', response: { status: 404 } })
    expect(await action.run(at(4n))).toMatchObject({ message: expect.stringContaining('superseded') })
    expect(engine.documents()).toEqual({})
    engine.collectDeletes()
    await action.run(at(4n))
    expect(Object.keys(engine.documents())).toEqual(['products/42'])
  })

  it.each([
    [400, false],
    [413, false],
    [429, true],
    [503, true],
  ])('that answers %i is OB004, worth another attempt: %s', async (status, transient) => {
    const { engine, action } = await open()
    engine.troubles.push((response) => response.writeHead(status, { 'retry-after': '3' }).end('canary-key'))
    const error = await failureOf(() => action.run(at(1n)))
    expect(error).toMatchObject({ code: 'OB004', transient, status, retryAfterMs: transient ? 3_000 : undefined })
    expect(JSON.stringify([error.message, error.detail])).not.toContain('canary-key')
  })

  it('that cannot map a field, refuses us or is away', async () => {
    const { engine, action } = await open()
    const mapping = await failureOf(() => action.run(at(1n, 'product.updated', { total: 'much' })))
    expect(mapping).toMatchObject({ transient: false, status: 400 })
    expect(mapping.detail.response?.body).toContain('document_parsing_exception')
    const stranger = searchWith({ index: 'products' }, { kind, url: engine.url, apiKey: 'canary-other' })
    const refused = await failureOf(() => stranger.run(at(1n)))
    expect(refused).toMatchObject({ transient: false, status: 401 })
    expect(JSON.stringify([refused.message, refused.detail])).not.toContain('canary-other')
    const away = searchWith({ index: 'products' }, { kind, url: `http://127.0.0.1:${await closedPort()}` })
    expect(await failureOf(() => away.run(at(1n)))).toMatchObject({ code: 'OB004', transient: true })
  })

  it('gets ids that look like paths, queries and steps as ids', async () => {
    const { engine, action } = await open()
    const ids = ['../_all', 'a/b?c=d#e', '..', '.', '%2e', 'ü 🙂', '_doc']
    for (const id of ids) await action.run(requestFor({ aggregate: { type: 'product', id }, payload: { name: 'x' } }))
    expect(Object.keys(engine.documents()).sort()).toEqual(ids.map((id) => `products/${id}`).sort())
  })
})

describe('meilisearch', () => {
  async function open() {
    const engine = await fakeMeilisearch()
    const provider = { kind: 'meilisearch', url: engine.url, apiKey: 'canary-key' } as const
    return { engine, action: searchWith({ index: 'products' }, provider) }
  }

  const at = (position: bigint, type = 'product.updated') =>
    requestFor({ type, aggregate: product, position, payload: { name: `at ${position}`, id: 'not this' } })

  it('ends with its task, and keeps the position in the document so that an older one is superseded', async () => {
    const { engine, action } = await open()
    expect(await action.run(at(5n))).toMatchObject({ message: 'upserted', response: { status: 202 } })
    expect(await action.run(at(3n))).toMatchObject({ message: expect.stringContaining('superseded') })
    expect(engine.documents()).toEqual({ 'products/42': { id: '42', name: 'at 5', _position: 5 } })
    expect(engine.calls[0]?.headers.authorization).toBe('Bearer canary-key')
    expect(await action.run(at(6n, 'product.deleted'))).toMatchObject({ message: 'deleted' })
    expect(engine.documents()).toEqual({})
  })

  it('gets writes of one document one after the other from one process', async () => {
    const { engine, action } = await open()
    await Promise.all([9n, 4n, 7n, 2n].map((position) => action.run(at(position))))
    expect(engine.documents()).toEqual({ 'products/42': { id: '42', name: 'at 9', _position: 9 } })
  })

  it('deletes from an index that does not exist', async () => {
    const { action } = await open()
    expect(await action.run(at(1n, 'product.deleted'))).toMatchObject({ success: true, message: 'deleted' })
  })

  it.each([
    ['invalid_request', false],
    ['internal', true],
    ['system', true],
  ])('whose task fails as %s is OB004, worth another attempt: %s', async (type, transient) => {
    const { engine, action } = await open()
    engine.failures.push({ type, code: 'some_code' })
    const error = await failureOf(() => action.run(at(1n)))
    expect(error).toMatchObject({ code: 'OB004', transient })
    expect(error.detail.response?.body).toContain('some_code')
  })

  it('is waited for until the attempt is ended from outside', async () => {
    const { engine, action } = await open()
    engine.isPaused = true
    const stop = new AbortController()
    const running = action.run({ ...at(1n), signal: stop.signal })
    while (!engine.calls.some(({ path }) => path.startsWith('/tasks/'))) await new Promise(setImmediate)
    stop.abort(new Error('stopping'))
    await expect(running).rejects.toThrow('stopping')
  })

  it('is not asked for a document whose id it would refuse', async () => {
    const { engine, action } = await open()
    const error = await failureOf(() =>
      action.run(requestFor({ aggregate: { type: 'product', id: 'a/b' }, payload: {} })),
    )
    expect(error).toMatchObject({ code: 'OB003', transient: false })
    expect(engine.calls).toEqual([])
  })
})
