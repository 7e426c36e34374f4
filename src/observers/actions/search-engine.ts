/** The port between the search action and the engines, and which one `[providers.search]` names. */
import type { DocumentWrite, WriteOutcome } from '../../search/index.ts'
import type { ActionContext, ActionRequest, SearchProvider } from '../action.ts'
import { ObserverError, type Received, type SentRequest } from '../observer-error.ts'
import { elasticsearch } from './search-elasticsearch.ts'
import { meilisearch } from './search-meilisearch.ts'
import { postgresSearch } from './search-postgres.ts'

export interface SearchEngine {
  readonly kind: SearchProvider['kind']
  readonly destination: string | null
  /** What the words of a new index are made with; only Postgres asks. */
  readonly language: string
  /** What is wrong with a name, as the rest of a sentence; undefined when nothing is. */
  indexProblem(name: string): string | undefined
  idProblem(id: string): string | undefined
  /** Newer positions win, whatever is written last. Throws `ObserverError`, or the reason of the signal. */
  write(write: DocumentWrite, request: Pick<ActionRequest, 'signal'>): Promise<WriteResult>
  /** Throws OB012 when the engine cannot do what the file says. */
  ready?(): Promise<void>
}

export interface WriteResult {
  readonly outcome: WriteOutcome
  readonly request?: SentRequest
  readonly response?: Received
}

/** Throws OB012 for a provider that cannot be used. */
export function prepareEngine(context: ActionContext): SearchEngine {
  const provider = context.providers.search
  if (provider === undefined) {
    throw new ObserverError(
      'OB012',
      'No search engine is configured, so a search action cannot be used. Add [providers.search] with kind = "postgres".',
    )
  }
  if (provider.kind === 'postgres') return postgresSearch(provider, context)
  return provider.kind === 'meilisearch' ? meilisearch(provider, context) : elasticsearch(provider, context)
}
