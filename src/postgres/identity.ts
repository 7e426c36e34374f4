/**
 * Which database a session belongs to. An event appended through another database's transaction would be written where
 * nobody reads it, or not commit together with the data, so it is refused.
 *
 * Asking costs a round trip or two, so the answer is remembered by what stays the same from one transaction to the
 * next: the pool or client underneath.
 */
import { AftercommitError } from '../errors.ts'
import type { Queryable } from './queryable.ts'
import { selectDatabaseName, selectMayReadSystemIdentifier, selectSystemIdentifier } from './statements.ts'

export interface DatabaseIdentity {
  database: string
  /** Of the cluster; null where the role may not read it. A copy made by base backup has the same. */
  system: string | null
}

/** Undefined when that is known already: the common case costs neither a question nor a turn of the event loop. */
export function assertSameDatabase(ours: Queryable, theirs: Queryable): Promise<void> | undefined {
  const [ourKey, theirKey] = [identityKey(ours), identityKey(theirs)]
  if (ourKey === theirKey || same.get(ourKey)?.has(theirKey)) return undefined
  return compareDatabases(ours, theirs)
}

const same = new WeakMap<object, WeakSet<object>>()

async function compareDatabases(ours: Queryable, theirs: Queryable): Promise<void> {
  const [expected, actual] = await Promise.all([databaseIdentity(ours), databaseIdentity(theirs)])
  if (isSame(expected, actual)) {
    const known = same.get(identityKey(ours)) ?? new WeakSet()
    same.set(identityKey(ours), known.add(identityKey(theirs)))
    return
  }
  throw new AftercommitError(
    'OTHER_DATABASE',
    `The transaction belongs to database ${describe(actual)}, while aftercommit keeps its log in ` +
      `${describe(expected)}, so nothing was written. Pass a transaction of the latter.`,
  )
}

function databaseIdentity(db: Queryable): Promise<DatabaseIdentity> {
  const key = identityKey(db)
  const known = identities.get(key)
  if (known) return known
  const asked = askIdentity(db)
  identities.set(key, asked)
  asked.catch(() => identities.delete(key))
  return asked
}

/** Declares that `db` leads to wherever `key` leads. */
export function shareIdentity(db: Queryable, key: object): void {
  keys.set(db, key)
}

const keys = new WeakMap<Queryable, object>()
const identities = new WeakMap<object, Promise<DatabaseIdentity>>()

function identityKey(db: Queryable): object {
  return keys.get(db) ?? db
}

async function askIdentity(db: Queryable): Promise<DatabaseIdentity> {
  const database = await selectDatabaseName(db)
  // Two steps, as a statement that names the function fails without the right to it, and a failed statement would
  // spoil the caller's transaction.
  const readable = await selectMayReadSystemIdentifier(db)
  return { database, system: readable ? await selectSystemIdentifier(db) : null }
}

function isSame(a: DatabaseIdentity, b: DatabaseIdentity): boolean {
  return a.database === b.database && (a.system === null || b.system === null || a.system === b.system)
}

function describe({ database, system }: DatabaseIdentity): string {
  return system === null ? `"${database}"` : `"${database}" of cluster ${system}`
}
