/**
 * A statement that is sent again and again, prepared once per connection: to parse and plan an append takes a quarter of
 * its time. Only where a connection leads straight to the server. Behind a pooler another server session may
 * answer the next statement, and that session does not know the prepared one; there, and after any doubt, the statement is
 * sent like any other.
 */
import { createHash } from 'node:crypto'
import type { Client } from 'pg'
import { lastResult, runQuery } from './driver.ts'
import type { Parameter, QueryResult } from './queryable.ts'
import { SQLSTATE, sqlstateOf } from './sqlstate.ts'
import { keepAlive } from './tcp-keepalive.ts'

/** Outside of a transaction only: what was refused is sent once more. */
export async function runRepeated<Row>(
  client: Client,
  text: string,
  values: readonly Parameter[],
): Promise<QueryResult<Row>> {
  if (!(await mayPrepare(client))) return runQuery(client, text, values)
  try {
    return await runPrepared(client, text, values)
  } catch (error) {
    if (!isDoubtful(error)) throw error
    return runQuery(client, text, values)
  }
}

/**
 * Inside a transaction nothing can be sent once more: the refusal has aborted it. It is the last one of this connection,
 * which prepares no more.
 */
export async function runRepeatedInside<Row>(
  client: Client,
  text: string,
  values: readonly Parameter[] = [],
): Promise<QueryResult<Row>> {
  return mayPrepare(client) === true ? runPrepared(client, text, values) : runQuery(client, text, values)
}

async function runPrepared<Row>(client: Client, text: string, values: readonly Parameter[]): Promise<QueryResult<Row>> {
  try {
    return lastResult(await client.query({ name: nameOf(text), text, values: values as Parameter[] }))
  } catch (error) {
    if (isDoubtful(error)) prepareNoMore(client)
    throw error
  }
}

/** Whether statements may be prepared under a name on this connection; the pool asks when the connection is new. */
export function mayPrepare(client: Client): boolean | Promise<boolean> {
  return direct.get(client) ?? findOut(client)
}

/** Whether one is there under its name is not known: on this connection they are sent like any other from now on. */
export function prepareNoMore(client: Client): void {
  direct.set(client, false)
}

/** What failed says that a prepared statement is not what it was taken for. Nothing was done. */
function isDoubtful(error: unknown): boolean {
  return DOUBTS.has(sqlstateOf(error))
}

const direct = new WeakMap<Client, boolean>()

async function findOut(client: Client): Promise<boolean> {
  const isDirect = await keepAlive(client)
  direct.set(client, isDirect)
  return isDirect
}

/** The statement is gone (DISCARD ALL), was there before, or no longer means the same. Nothing was done. */
const DOUBTS: ReadonlySet<string | undefined> = new Set([
  SQLSTATE.invalidStatementName,
  SQLSTATE.duplicateStatement,
  SQLSTATE.featureNotSupported,
])

/** By its text: whoever finds a statement of this name, whoever prepared it, finds this one. */
export function nameOf(text: string): string {
  const known = names.get(text)
  if (known) return known
  const name = `aftercommit_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
  names.set(text, name)
  return name
}

const names = new Map<string, string>()
