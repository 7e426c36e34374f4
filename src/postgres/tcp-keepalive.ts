/**
 * Lets the server notice within half a minute that a client has vanished without a word. By default a server asks after
 * two hours, and until then a lost session keeps its locks and its open transaction.
 */
import type { Client } from 'pg'
import { runQuery } from './driver.ts'

/** After 10 s of silence the server asks every 5 s, three times. Without effect on a Unix socket. */
const SETTINGS = { tcp_keepalives_idle: '10', tcp_keepalives_interval: '5', tcp_keepalives_count: '3' }

/**
 * For this session, where the connection leads straight to the server; the answer says whether it does. Behind a pooler
 * the settings would stay on a connection of the pooler. A pooler announces a process id of its own at the start.
 */
export async function keepAlive(client: Client): Promise<boolean> {
  const { rows } = await runQuery<{ direct: boolean }>(client, QUESTION, [Number(Reflect.get(client, 'processID'))])
  return rows[0]!.direct
}

const QUESTION = `select pid.direct${Object.entries(SETTINGS)
  .map(
    ([name, value], n) =>
      `, case when pid.direct then pg_catalog.set_config('${name}', '${value}', false) end as setting${n}`,
  )
  .join('')}
  from (select pg_catalog.pg_backend_pid() = $1::integer as direct) pid`
