/** `kind = "postgres"`: documents live in this database; `ac.search` finds them. */
import { AftercommitError } from '../../errors.ts'
import { classify, sqlstateOf } from '../../postgres/index.ts'
import type { ActionContext, SearchProvider } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import type { SearchEngine } from './search-engine.ts'
import { idProblem, postgresIndexProblem } from './search-names.ts'

export function postgresSearch({ language = 'simple' }: SearchProvider, { documents }: ActionContext): SearchEngine {
  return {
    kind: 'postgres',
    destination: null,
    language,
    indexProblem: postgresIndexProblem,
    idProblem,
    async write(write) {
      try {
        return { outcome: await documents.write(write) }
      } catch (error) {
        throw failed(error)
      }
    },
    async ready() {
      try {
        await documents.checkLanguage(language)
      } catch (error) {
        if (!(error instanceof AftercommitError) || error.code !== 'BAD_OPTION') throw error
        throw new ObserverError('OB012', `language of [providers.search] cannot be used. ${error.message}`)
      }
    },
  }
}

/** Postgres quotes values in its messages, so only the state is told; the rest is in `cause`. */
function failed(error: unknown): ObserverError {
  const state = sqlstateOf(error)
  const transient = state === undefined || classify(error) !== 'permanent'
  const said = state === undefined ? 'without an answer of the database' : `with SQLSTATE ${state}`
  const advice = transient
    ? 'It is tried again as configured.'
    : 'It is not tried again. Correct what the error says, then redrive the dead letter.'
  return new ObserverError('OB004', `Writing the document to the search index failed ${said}. ${advice}`, {
    transient,
    cause: error,
  })
}
