/**
 * The document API of Elasticsearch and OpenSearch, as far as we use it and as their references describe it: external
 * versions with 409, results and 404 of deletions, versions of deleted documents kept until they are collected, mapping
 * errors, keys. A fake: it shows that we keep to the published contract, not that a release of theirs does.
 */
import type { ServerResponse } from 'node:http'
import { type HttpReceiver, httpReceiver, type ReceivedCall } from '../../support/receivers.ts'

export interface FakeElasticsearch extends HttpReceiver {
  /** By `index/id`; without those that are deleted. */
  documents(): Record<string, { version: bigint; source: unknown }>
  /** As `index.gc_deletes` does after a minute. */
  collectDeletes(): void
  /** Answers the next calls with these in place of doing anything. */
  readonly troubles: ((response: ServerResponse) => unknown)[]
}

export async function fakeElasticsearch(authorization?: string): Promise<FakeElasticsearch> {
  const kept = new Map<string, { version: bigint; source: unknown; deleted: boolean }>()
  const troubles: ((response: ServerResponse) => unknown)[] = []

  function answer(response: ServerResponse, call: ReceivedCall): unknown {
    const trouble = troubles.shift()
    if (trouble) return trouble(response)
    if (authorization !== undefined && call.headers.authorization !== authorization)
      return json(response, 401, {
        error: { type: 'security_exception', reason: 'missing authentication' },
        status: 401,
      })
    // Not by URL, which would take %2E%2E for a step.
    const [pathname = '', query] = call.path.split('?')
    const asked = new URLSearchParams(query)
    if (pathname === '/') return json(response, 200, { version: { number: '9.0.0' }, tagline: 'fake' })
    const [, index = '', kind, id = ''] = pathname.split('/').map(decodeURIComponent)
    if (kind !== '_doc' || asked.get('version_type') !== 'external_gte')
      return json(response, 400, { error: { type: 'illegal_argument_exception' }, status: 400 })
    const key = `${index}/${id}`
    const version = BigInt(asked.get('version') ?? '')
    const known = kept.get(key)
    if (known && known.version > version)
      return json(response, 409, { error: { type: 'version_conflict_engine_exception' }, status: 409 })
    if (call.method === 'DELETE') {
      kept.set(key, { version, source: null, deleted: true })
      const result = known && !known.deleted ? 'deleted' : 'not_found'
      return json(response, result === 'deleted' ? 200 : 404, {
        _index: index,
        _id: id,
        result,
        _version: Number(version),
      })
    }
    const source = JSON.parse(call.body) as Record<string, unknown>
    if ('total' in source && typeof source.total !== 'number')
      return json(response, 400, {
        error: { type: 'document_parsing_exception', reason: 'failed to parse field [total]' },
        status: 400,
      })
    kept.set(key, { version, source, deleted: false })
    const result = known && !known.deleted ? 'updated' : 'created'
    return json(response, result === 'created' ? 201 : 200, {
      _index: index,
      _id: id,
      result,
      _version: Number(version),
    })
  }

  const receiver = await httpReceiver(answer)
  return Object.assign(receiver, {
    troubles,
    documents: () =>
      Object.fromEntries(
        [...kept].flatMap(([key, { version, source, deleted }]) => (deleted ? [] : [[key, { version, source }]])),
      ),
    collectDeletes() {
      for (const [key, { deleted }] of kept) if (deleted) kept.delete(key)
    },
  })
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
