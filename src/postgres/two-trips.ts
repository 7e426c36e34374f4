/**
 * A transaction in two round trips: BEGIN with a statement that locks and reads, then a statement that writes with COMMIT.
 * Half the messages of `transaction` as well, for what is done thousands of times a second. The ends, failures first:
 *
 * - the connection dies before the second trip: rolled back by the server, the error says so
 * - it dies during it: nobody can know, so `OutcomeUnknownError`
 * - a statement fails: what shares its trip and comes after it is not run, and everything is rolled back
 * - `decide` throws or has nothing to write: rolled back
 */
import type { Client, QueryResult as PgResult } from 'pg'
import { type Driver, destroyClient } from './driver.ts'
import { isDoubtful, mayPrepare, nameOf, prepareNoMore } from './prepared.ts'
import type { Parameter } from './queryable.ts'
import { classify, SQLSTATE, sqlstateOf } from './sqlstate.ts'
import { OutcomeUnknownError } from './transaction.ts'

export interface Statement {
  readonly text: string
  readonly values: readonly Parameter[]
}

/** What the second trip is to write; undefined for nothing. */
export type DecideTrip<First> = (row: First) => Statement | undefined | Promise<Statement | undefined>

/** Each statement answers one row. Undefined when nothing was written. */
export async function runTwoTrips<First, Last>(
  driver: Driver,
  client: Client,
  first: Statement,
  decide: DecideTrip<First>,
): Promise<Last | undefined> {
  let last: Statement | undefined
  await mayPrepare(client)
  try {
    const read = await sendTogether(driver, client, first, { before: 'begin isolation level read committed' })
    last = await decide(read as First)
  } catch (error) {
    await rollBack(client)
    throw error
  }
  if (last === undefined) {
    await rollBack(client)
    return undefined
  }
  try {
    return (await sendTogether(driver, client, last, { after: 'commit' })) as Last
  } catch (error) {
    const unknown = classify(error) === 'connection' || sqlstateOf(error) === SQLSTATE.crashShutdown
    if (unknown) throw new OutcomeUnknownError(error)
    await rollBack(client)
    throw error
  }
}

interface Company {
  readonly before?: string
  readonly after?: string
}

/** The one row of the statement. */
function sendTogether(driver: Driver, client: Client, statement: Statement, company: Company): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const known = statementsOf(client)
    // Found out before the first trip.
    const name = mayPrepare(client) === true ? nameOf(statement.text) : ''
    const isKnown = known.has(name)
    const answered = (error: Error | null, results: PgResult[]) => {
      if (error) {
        if (!isKnown || isDoubtful(error)) prepareNoMore(client)
        reject(error)
        return
      }
      if (name !== '') known.add(name)
      resolve(results.find(({ rows }) => rows.length > 0)?.rows[0])
    }
    const how = { ...company, name, isKnown }
    client.query(new (togetherClass(driver))(statement, how, answered))
  })
}

function statementsOf(client: Client): Set<string> {
  const known = prepared.get(client) ?? new Set()
  prepared.set(client, known)
  return known
}

/** Names of what was prepared on each connection. */
const prepared = new WeakMap<Client, Set<string>>()

/** The part of the driver's connection that sends. */
interface Connection {
  parse(message: { text: string; name: string }): void
  bind(message: { values?: readonly Parameter[]; portal: string; statement: string }): void
  describe(message: { type: 'P'; name: string }): void
  execute(message: { portal: string }): void
  sync(): void
}

type Answered = (error: Error | null, results: PgResult[]) => void
type TogetherClass = new (statement: Statement, how: How, answered: Answered) => InstanceType<Driver['Query']>

interface How extends Company {
  /** Of the prepared statement; empty for none. */
  readonly name: string
  readonly isKnown: boolean
}

/** Several statements before one Sync: the server answers them all at once, and stops at the first that fails. */
function togetherClass({ Query }: Driver): TogetherClass {
  together ??= class Together extends Query {
    readonly #how: How

    constructor({ text, values }: Statement, how: How, answered: Answered) {
      super({ text, values: values.map((value) => (value === null ? null : String(value))) }, answered as never)
      this.#how = how
    }

    requiresPreparation(): boolean {
      return true
    }

    prepare(connection: Connection): void {
      const { text, values } = this as unknown as Statement
      const { before, after, name, isKnown } = this.#how
      if (before) sendPlain(connection, before)
      if (!isKnown) connection.parse({ text, name })
      connection.bind({ values, portal: '', statement: name })
      connection.describe({ type: 'P', name: '' })
      connection.execute({ portal: '' })
      if (after) sendPlain(connection, after)
      connection.sync()
    }
  }
  return together
}

let together: TogetherClass | undefined

/** Without a description: nobody looks at rows it does not have. */
function sendPlain(connection: Connection, text: string): void {
  connection.parse({ text, name: '' })
  connection.bind({ portal: '', statement: '' })
  connection.execute({ portal: '' })
}

async function rollBack(client: Client): Promise<void> {
  try {
    await client.query('rollback')
  } catch {
    // The session ends, and the transaction with it; the error that led here is the one to report.
    destroyClient(client)
  }
}
