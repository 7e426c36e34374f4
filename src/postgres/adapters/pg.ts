import { nameOf } from '../prepared.ts'
import type { QueryResult } from '../queryable.ts'
import type { Adapter } from './adapter.ts'
import { hasMethods, numbersAsText, property } from './adapter.ts'

interface PgSession {
  query(text: string, values: unknown[]): Promise<PgResult>
  query(statement: { name: string; text: string; values: unknown[] }): Promise<PgResult>
}

interface PgResult {
  rows: never[]
  rowCount: number | null
}

/** node-postgres: a client, a client of a pool, or a pool, where every statement is a transaction of its own. */
export const pgAdapter: Adapter = {
  library: 'pg (Client, PoolClient or Pool)',
  sendsUntyped: true,
  accepts: (source) =>
    hasMethods(source, 'query', 'connect') &&
    (hasMethods(source, 'escapeIdentifier') || typeof property(source, 'totalCount') === 'number'),
  isOutside(source) {
    if (!hasMethods(source, 'escapeIdentifier')) return true
    // A client that waits for an answer may be about to run BEGIN. Older releases do not tell their status.
    if (!hasMethods(source, 'getTransactionStatus') || property(source, 'readyForQuery') !== true) return false
    return (source as { getTransactionStatus(): string | null }).getTransactionStatus() === 'I'
  },
  inside: 'the client that ran BEGIN',
  toQuery(source) {
    const session = source as PgSession
    return (text, values, { mayPrepareOnClient = false } = {}) =>
      (mayPrepareOnClient
        ? session.query({ name: nameOf(text), text, values: numbersAsText(values) })
        : session.query(text, numbersAsText(values))
      ).then(toResult)
  },
  identityKey: (source) => source,
}

function toResult({ rows, rowCount }: PgResult): QueryResult<never> {
  return { rows, rowCount: rowCount ?? 0 }
}
