import type { Adapter } from './adapter.ts'
import { hasMethods, isObject, numbersAsText, property } from './adapter.ts'
import { pgAdapter } from './pg.ts'
import { postgresJsAdapter, postgresJsIdentity } from './postgres-js.ts'

interface DrizzleSession {
  execute(query: SqlWrapper): Promise<DrizzleResult>
}

/** The part of Drizzle's `SQL` that `execute` uses, so that Drizzle itself need not be imported to build one. */
interface SqlWrapper {
  getSQL(): SqlWrapper
  toQuery(): { sql: string; params: unknown[] }
}

/** What the driver below returns: node-postgres a result, postgres.js an array with a count. */
type DrizzleResult = { rows: never[]; rowCount: number | null } | (never[] & { count: number | null })

/** Drizzle on node-postgres or postgres.js: a database or a transaction. */
export const drizzleAdapter: Adapter = {
  library: 'Drizzle (db or tx)',
  accepts: (source) => hasMethods(source, 'execute', 'transaction') && isObject(property(source, 'session')),
  isOutside(source) {
    if (hasMethods(source, 'rollback')) return false
    const client = property(property(source, 'session'), 'client')
    const driver = [pgAdapter, postgresJsAdapter].find((one) => isObject(client) && one.accepts(client))
    return driver === undefined || driver.isOutside(client as object)
  },
  inside: 'the `tx` that `db.transaction` gives',
  toQuery: (source) => async (text, values) => {
    const result = await (source as DrizzleSession).execute(statement(text, numbersAsText(values))).catch(rethrowCause)
    if (Array.isArray(result)) return { rows: [...result], rowCount: result.count ?? result.length }
    return { rows: result.rows, rowCount: result.rowCount ?? 0 }
  },
  identityKey(source) {
    const client = property(property(source, 'session'), 'client')
    if (typeof client === 'function') return postgresJsIdentity(client)
    return isObject(client) ? client : source
  },
}

function statement(sql: string, params: unknown[]): SqlWrapper {
  const wrapper: SqlWrapper = { getSQL: () => wrapper, toQuery: () => ({ sql, params }) }
  return wrapper
}

/** Drizzle's own error repeats all parameters in its message, and ours contain payloads; the cause does not. */
function rethrowCause(error: unknown): never {
  throw error instanceof Error && error.cause instanceof Error ? error.cause : error
}
