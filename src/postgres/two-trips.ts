/**
 * A transaction in two round trips: BEGIN with a statement that locks and reads, then a statement that writes with COMMIT.
 * Each pair is sent without waiting in between; the server answers in order. The ends, failures first:
 *
 * - the connection dies before the second trip: rolled back by the server, the error says so
 * - it dies during it: nobody can know, so `OutcomeUnknownError`
 * - a statement fails: COMMIT becomes a ROLLBACK
 * - `decide` throws or has nothing to write: rolled back
 */
import type { Client } from 'pg'
import { destroyClient } from './driver.ts'
import { mayPrepare, runRepeatedInside } from './prepared.ts'
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
  client: Client,
  first: Statement,
  decide: DecideTrip<First>,
): Promise<Last | undefined> {
  let last: Statement | undefined
  await mayPrepare(client)
  try {
    const [, read] = await Promise.all([
      client.query('begin isolation level read committed'),
      runRepeatedInside<First>(client, first.text, first.values),
    ])
    last = await decide(read.rows[0]!)
  } catch (error) {
    await rollBack(client)
    throw error
  }
  if (last === undefined) {
    await rollBack(client)
    return undefined
  }
  const [written, committed] = await Promise.allSettled([
    runRepeatedInside<Last>(client, last.text, last.values),
    client.query('commit'),
  ])
  const failed = [written, committed].find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
  if (failed === undefined) return (written as PromiseFulfilledResult<{ rows: Last[] }>).value.rows[0]
  const { reason } = failed
  const isUnknown = classify(reason) === 'connection' || sqlstateOf(reason) === SQLSTATE.crashShutdown
  throw isUnknown ? new OutcomeUnknownError(reason) : reason
}

async function rollBack(client: Client): Promise<void> {
  try {
    await client.query('rollback')
  } catch {
    // The session ends, and the transaction with it; the error that led here is the one to report.
    destroyClient(client)
  }
}
