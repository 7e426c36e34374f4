/**
 * Sessions of client libraries as a Queryable: each is recognised by its shape. One file per library; `adapter.ts` is the
 * contract.
 */
import { AftercommitError } from '../../errors.ts'
import { shareIdentity } from '../identity.ts'
import type { Queryable } from '../queryable.ts'
import type { Adapter } from './adapter.ts'
import { hasMethods, isObject, property } from './adapter.ts'
import { drizzleAdapter } from './drizzle.ts'
import { kyselyAdapter } from './kysely.ts'
import { pgAdapter } from './pg.ts'
import { postgresJsAdapter } from './postgres-js.ts'
import { prismaAdapter } from './prisma.ts'

const ADAPTERS: readonly Adapter[] = [pgAdapter, postgresJsAdapter, drizzleAdapter, kyselyAdapter, prismaAdapter]

/**
 * The caller's transaction. A pool or root client is refused: what it writes would be committed at once and stay when the
 * caller rolls back. `otherwise` says how to write without a transaction, to follow "or".
 */
export function toTransaction(source: unknown, schema: string, otherwise: string): Queryable {
  const adapter = adapterOf(source)
  if (adapter?.isOutside(source as object)) throw outsideTransaction(adapter, otherwise)
  if (adapter === undefined && !isQueryable(source)) throw notATransaction(source, otherwise)
  return toQueryable(source, schema)
}

/**
 * A session of any kind: a transaction, client or pool. `schema` is quoted already. A Queryable of that schema is returned
 * as it is, aftercommit's own transaction included.
 */
export function toQueryable(source: unknown, schema: string): Queryable {
  const known = isObject(source) ? adapted.get(source)?.get(schema) : undefined
  if (known) return known
  if (isQueryable(source)) return source.schema === schema ? source : withSchema(source, schema)
  const adapter = adapterOf(source)
  if (!isObject(source) || !adapter) throw notASession(source)
  const { sendsUntyped = false } = adapter
  const queryable: Queryable = { schema, sendsUntyped, query: adapter.toQuery(source) }
  shareIdentity(queryable, adapter.identityKey(source))
  const bySchema = adapted.get(source) ?? new Map<string, Queryable>()
  adapted.set(source, bySchema.set(schema, queryable))
  return queryable
}

/** A client is recognised once, not at every statement. */
const adapted = new WeakMap<object, Map<string, Queryable>>()

function adapterOf(source: unknown): Adapter | undefined {
  return isObject(source) ? ADAPTERS.find((candidate) => candidate.accepts(source)) : undefined
}

function outsideTransaction({ library, inside }: Adapter, otherwise: string): AftercommitError {
  return new AftercommitError(
    'NOT_A_TRANSACTION',
    `The session of ${library} is not inside a transaction: what it writes would stay when yours rolls back, so nothing ` +
      `was sent. Pass ${inside}, or ${otherwise}.`,
  )
}

function isQueryable(source: unknown): source is Queryable {
  return isObject(source) && hasMethods(source, 'query') && typeof property(source, 'schema') === 'string'
}

function withSchema(source: Queryable, schema: string): Queryable {
  const { sendsUntyped = false } = source
  const queryable: Queryable = { schema, sendsUntyped, query: source.query.bind(source) }
  shareIdentity(queryable, source)
  return queryable
}

function notATransaction(source: unknown, otherwise: string): AftercommitError {
  const accepted = ADAPTERS.map(({ library, inside }) => `of ${library.split(' ', 1)[0]} ${inside}`).join(', ')
  return new AftercommitError(
    'NOT_A_TRANSACTION',
    `${describe(source)} was given as the transaction, so nothing was sent. Pass aftercommit's own transaction, ` +
      `${accepted}, or ${otherwise}.`,
  )
}

function notASession(source: unknown): AftercommitError {
  const accepted = ["aftercommit's own transaction", ...ADAPTERS.map((adapter) => adapter.library)].join(', ')
  return new AftercommitError(
    'NOT_A_TRANSACTION',
    `${describe(source)} is not a session of a library that aftercommit knows, so nothing was sent. ` +
      `Accepted are: ${accepted}.`,
  )
}

/** By kind only: the value may hold anything. */
function describe(source: unknown): string {
  if (source === null || source === undefined) return String(source)
  if (typeof source !== 'object') return `A ${typeof source}`
  const name = property(property(source, 'constructor'), 'name')
  return typeof name === 'string' && name !== '' ? `An object of class ${name}` : 'An object'
}
