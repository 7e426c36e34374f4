/** A log with a process that subscribes to it, for commands that look at it and change it from outside. */
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript, type TestProcess } from '../support/processes.ts'
import { runCli } from './support.ts'

const SUBSCRIBER = fileURLToPath(new URL('./subscriber.mjs', import.meta.url))

export interface SubscribedLog {
  readonly url: string
  readonly env: Record<string, string>
  readonly sql: pg.Client
  readonly subscriber: TestProcess
  cli(...args: string[]): ReturnType<typeof runCli>
  json<T = Record<string, unknown>>(...args: string[]): Promise<T>
  emit(id: string, order: string, payload?: object): Promise<void>
  /** When everything that is in the log has been handled, or has become a letter. */
  caughtUp(): Promise<void>
}

export async function subscribedLog(): Promise<SubscribedLog> {
  const { url } = await testDatabase({ migrated: true })
  const env = { DATABASE_URL: url }
  const sql = await connect(url)
  const subscriber = spawnScript(SUBSCRIBER, [url])
  await subscriber.waitForLine('started')
  const cli = (...args: string[]) => runCli(args, { env })
  return {
    url,
    env,
    sql,
    subscriber,
    cli,
    json: async (...args) => JSON.parse((await cli(...args, '--json')).stdout),
    async emit(id, order, payload = {}) {
      await sql.query(
        `select aftercommit.emit('order.placed', 'order', $2, $3::jsonb, id => $1, metadata => '{"user_id":"ada"}')`,
        [id, order, payload],
      )
    },
    caughtUp: () =>
      eventually(async () => {
        const { rows } = await sql.query(
          `select from aftercommit.subscription_partitions
            where position < (select coalesce(max(position), 0) from aftercommit.events)`,
        )
        return rows.length === 0 || undefined
      }).then(() => undefined),
  }
}

/** Letter 1 with an event waiting behind it, and letter 2 without. */
export async function logWithLetters(): Promise<SubscribedLog> {
  const log = await subscribedLog()
  await log.emit('one', '1', { fails: true, card: '4111-secret' })
  await log.caughtUp()
  await log.emit('behind-one', '1')
  await log.emit('two', '2', { fails: true })
  await log.caughtUp()
  return log
}

export async function readAudit(sql: pg.Client): Promise<unknown[]> {
  const { rows } = await sql.query('select who, what, target, reason from aftercommit.audit order by id')
  return rows
}
