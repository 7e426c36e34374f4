import type { Adapter } from './adapter.ts'
import { hasMethods, isObject, numbersAsText, property } from './adapter.ts'

interface KyselySession {
  withoutPlugins(): KyselySession
  executeQuery(query: CompiledQuery): Promise<{ rows: never[]; numAffectedRows?: bigint }>
}

/** What `CompiledQuery.raw` builds. */
interface CompiledQuery {
  sql: string
  parameters: readonly unknown[]
  query: { kind: 'RawNode'; sqlFragments: readonly string[]; parameters: readonly never[] }
  queryId: { queryId: string }
}

/** Kysely on any PostgreSQL dialect: a database or a transaction. Plugins are left out, as they rename columns. */
export const kyselyAdapter: Adapter = {
  library: 'Kysely (db or trx)',
  accepts: (source) => hasMethods(source, 'executeQuery', 'getExecutor', 'withoutPlugins'),
  isOutside: (source) => property(source, 'isTransaction') === false,
  inside: 'the `trx` that `db.transaction().execute` gives',
  toQuery: (source) => async (text, values) => {
    const query = compiledQuery(text, numbersAsText(values))
    const { rows, numAffectedRows } = await (source as KyselySession).withoutPlugins().executeQuery(query)
    return { rows, rowCount: numAffectedRows === undefined ? rows.length : Number(numAffectedRows) }
  },
  identityKey(source) {
    const executor = (source as { getExecutor(): unknown }).getExecutor()
    const dialect = property(executor, 'adapter')
    return isObject(dialect) ? dialect : source
  },
}

function compiledQuery(sql: string, parameters: readonly unknown[]): CompiledQuery {
  return {
    sql,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'aftercommit' },
  }
}
