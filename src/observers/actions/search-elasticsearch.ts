/**
 * `kind = "elasticsearch"` and `"opensearch"`: the document API, with the position as external version. The engine keeps
 * the highest version it has seen and answers 409 to an older one, which is what we want. Of a deleted document it keeps
 * the version for `index.gc_deletes`, a minute unless told.
 */
import type { SearchProvider } from '../action.ts'
import type { SearchEngine } from './search-engine.ts'
import { createSearchHttp, SEARCH_TIMEOUT_MS, type SearchHttpContext, segment } from './search-http.ts'
import { elasticsearchIndexProblem, idProblem } from './search-names.ts'

export function elasticsearch(provider: SearchProvider, context: SearchHttpContext): SearchEngine {
  const http = createSearchHttp(provider, context)

  return {
    kind: provider.kind,
    destination: `search ${http.origin}`,
    language: '',
    indexProblem: elasticsearchIndexProblem,
    idProblem,
    async write({ index, id, position, json }, { signal }) {
      const path = `/${segment(index)}/_doc/${segment(id)}?version=${position}&version_type=external_gte`
      const shared = { path, timeoutMs: SEARCH_TIMEOUT_MS, signal }
      const { status, request, response } =
        json === null
          ? // Nothing there to delete: then it is not there, as it should be.
            await http.ask({ ...shared, method: 'DELETE', expected: [CONFLICT, NOT_FOUND] })
          : await http.ask({ ...shared, method: 'PUT', body: json, expected: [CONFLICT] })
      return { outcome: status === CONFLICT ? 'superseded' : 'written', request, response }
    },
  }
}

const CONFLICT = 409
const NOT_FOUND = 404
