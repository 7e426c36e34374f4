/**
 * Connections on trial: one to the same server was found dead, and TCP tells of that only after minutes. A statement that
 * has waited since then is judged by what the server says of its backend: one that works for us is left alone, one that
 * waits for us has never got the statement, or its answer is lost.
 */
import type { Client } from 'pg'
import type { Clock } from '../runtime/index.ts'
import { destroyClient } from './driver.ts'
import { mayPrepare } from './prepared.ts'

/** An answer that is on its way arrives within this time. */
const TRIAL_MS = 2_000

/** Asks past the connections on trial which of these backends work now. */
export type SelectWorking = (pids: readonly number[]) => Promise<ReadonlySet<number>>

/** Ends those of the connections that have waited for the same answer all the time and get none. */
export async function tryConnections(
  clients: Iterable<Client>,
  { clock, selectWorking }: { clock: Clock; selectWorking: SelectWorking },
): Promise<number> {
  const suspects: { client: Client; statement: unknown }[] = []
  for (const client of clients) {
    const statement = statementOf(client)
    // Behind a pooler the backend that was announced says nothing.
    if (statement !== null && mayPrepare(client) === true) suspects.push({ client, statement })
  }
  if (suspects.length === 0) return 0
  await clock.sleep(TRIAL_MS)
  const waiting = suspects.filter(({ client, statement }) => statementOf(client) === statement)
  if (waiting.length === 0) return 0
  const working = await selectWorking(waiting.map(({ client }) => pidOf(client)))
  const dead = waiting.filter(({ client, statement }) => {
    return !working.has(pidOf(client)) && statementOf(client) === statement
  })
  for (const { client } of dead) destroyClient(client)
  return dead.length
}

/** The statement that waits for its answer; the driver keeps it in a field that its types do not show. */
function statementOf(client: Client): unknown {
  return Reflect.get(client, '_activeQuery') ?? null
}

function pidOf(client: Client): number {
  return Number(Reflect.get(client, 'processID'))
}
