/** Whether the engine of `[providers.search]` is there, knows us, and can do what the file says. Nothing is written. */
import { type Finding, ok, type Queryable, SQLSTATE, sqlstateOf } from '../../postgres/index.ts'
import { diagnoseIndexes } from '../../search/index.ts'
import type { SearchProvider } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { createSearchHttp, type SearchHttpContext } from './search-http.ts'

const TIMEOUT_MS = 5_000

export async function diagnoseSearch(
  provider: SearchProvider,
  { db, ...context }: SearchHttpContext & { readonly db: Queryable },
): Promise<Finding[]> {
  return provider.kind === 'postgres'
    ? diagnosePostgres(provider, db)
    : [await diagnoseHttp(provider, context).catch(toFinding)]
}

async function diagnosePostgres({ language = 'simple' }: SearchProvider, db: Queryable): Promise<Finding[]> {
  try {
    return await diagnoseIndexes(db, language)
  } catch (error) {
    if (sqlstateOf(error) !== SQLSTATE.insufficientPrivilege) throw error
    const message = 'This role may not look at search indexes, so they were not looked at.'
    return [{ level: 'note', check: 'search', message, fix: 'As the owner: aftercommit migrate --grant-run <role>' }]
  }
}

async function diagnoseHttp(provider: SearchProvider, context: SearchHttpContext): Promise<Finding> {
  const http = createSearchHttp(provider, context)
  const { signal } = new AbortController()
  // Meilisearch lets anybody ask how it is; the others want to know who asks even here.
  const path = provider.kind === 'meilisearch' ? '/health' : '/'
  await http.ask({ method: 'GET', path, timeoutMs: TIMEOUT_MS, signal })
  return ok('search', `${http.origin} answers`)
}

function toFinding(error: unknown): Finding {
  if (!(error instanceof ObserverError)) throw error
  const { status } = error
  const isRefused = status === 401 || status === 403
  const [message = ''] = error.message.split('. ')
  return {
    level: isRefused || error.code === 'OB012' ? 'problem' : 'warning',
    check: 'search',
    message: `${message}, so documents are not written.`,
    fix: `Look at url and api_key of [providers.search]`,
  }
}
