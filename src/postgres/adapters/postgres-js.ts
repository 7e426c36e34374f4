import type { Adapter } from './adapter.ts'
import { hasMethods, isObject, numbersAsText, property } from './adapter.ts'

interface PostgresJs {
  unsafe(text: string, values: unknown[]): Promise<never[] & { count: number | null }>
}

/**
 * postgres.js: `sql`, or the `sql` of `begin` and `reserve`. It sends a value according to the type the server
 * describes (a string for jsonb would be encoded a second time), which is why our statements take everything as text.
 */
export const postgresJsAdapter: Adapter = {
  library: 'postgres.js (sql or the sql of begin)',
  accepts: (source) => typeof source === 'function' && hasMethods(source, 'unsafe', 'array', 'json'),
  isOutside: (source) => hasMethods(source, 'begin', 'end') && !hasMethods(source, 'release'),
  inside: 'the `sql` that `sql.begin` gives',
  toQuery: (source) => async (text, values) => {
    const rows = await (source as unknown as PostgresJs).unsafe(text, numbersAsText(values))
    return { rows: [...rows], rowCount: rows.count ?? rows.length }
  },
  identityKey: postgresJsIdentity,
}

/** Every transaction has a `sql` of its own; its `json` function is the one thing all of one pool have in common. */
export function postgresJsIdentity(sql: object): object {
  const shared = property(sql, 'json')
  return isObject(shared) ? shared : sql
}
