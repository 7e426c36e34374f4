import type { Adapter } from './adapter.ts'
import { hasMethods, numbersAsText, property } from './adapter.ts'

interface PgSession {
  query(config: { text: string; values: unknown[] }): Promise<{ rows: never[]; rowCount: number | null }>
}

/** node-postgres: a client, a client of a pool, or a pool, where every statement is a transaction of its own. */
export const pgAdapter: Adapter = {
  library: 'pg (Client, PoolClient or Pool)',
  accepts: (source) =>
    hasMethods(source, 'query', 'connect') &&
    (hasMethods(source, 'escapeIdentifier') || typeof property(source, 'totalCount') === 'number'),
  toQuery: (source) => async (text, values) => {
    const { rows, rowCount } = await (source as PgSession).query({ text, values: numbersAsText(values) })
    return { rows, rowCount: rowCount ?? 0 }
  },
  identityKey: (source) => source,
}
