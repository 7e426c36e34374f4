/** `aftercommit start` on a file of rules in a folder of its own, the database it reads, and what receivers tell of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { type CliResult, emptyFolder, runCli, startCli } from '../../cli/support.ts'
import { emitMany } from '../../subscriptions/support/open-subscriptions.ts'
import { connect, testDatabase } from '../../support/database.ts'
import type { TestProcess } from '../../support/processes.ts'
import type { ReceivedCall } from '../../support/receivers.ts'

export interface Observing {
  readonly url: string
  readonly sql: pg.Client
  readonly folder: string
  /** Puts a file beside the rules; without a name it is the rules. */
  write(text: string, file?: string): void
  /** Resolves when it is ready. */
  start(...args: string[]): Promise<TestProcess>
  cli(...args: string[]): Promise<CliResult>
  /** `n` events `lamp.lit` in one transaction, with ids `prefix1` and so on. */
  emit(n: number, prefix?: string): Promise<void>
  deliveries(where?: string): Promise<number>
  /** Whether nobody would read an event again. */
  isPassed(): Promise<boolean>
  /** Events that would be read again. */
  unfinished(): Promise<number>
  letters(): Promise<{ owner: string; attempts: number; error: { code: string; message: string }; event: StoredCopy }[]>
}

interface StoredCopy {
  readonly id: string
  readonly metadata: { readonly depth?: number }
}

export async function openObserving(rules: string, env: Record<string, string> = {}): Promise<Observing> {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const folder = emptyFolder()
  const options = { cwd: folder, env: { DATABASE_URL: url, ...env } }
  const write = (text: string, file = 'aftercommit.toml') => writeFileSync(join(folder, file), text)
  write(rules)
  return {
    url,
    sql,
    folder,
    write,
    async start(...args) {
      const started = startCli(['start', ...args], options)
      await started.waitForLine(/Ready:|"ready":true/)
      return started
    },
    cli: (...args) => runCli(args, options),
    emit: (n, prefix = 'event-') => emitMany(sql, n, { prefix }),
    deliveries: async (where = 'true') =>
      (await sql.query(`select from aftercommit.deliveries where ${where}`)).rowCount ?? 0,
    async isPassed() {
      const { rows } = await sql.query(
        `select position >= (select max(position) from aftercommit.events) as passed
           from aftercommit.subscription_partitions
          where id = 'observers'`,
      )
      return rows[0]?.passed === true
    },
    async unfinished() {
      const { rows } = await sql.query(
        `select count(*)::int as count
           from aftercommit.events e, aftercommit.subscription_partitions p
          where p.id = 'observers' and e.position > p.position and not e.position <@ p.done`,
      )
      return rows[0].count
    },
    letters: async () => (await sql.query('select owner, attempts, error, event from aftercommit.letters')).rows,
  }
}

/** A rule that calls an address for every `lamp.lit`. */
export function callRule(name: string, url: string, keys = ''): string {
  return `[observers.${name}]\non = "lamp.lit"\n${keys}\nactions = [{ type = "webhook", url = "${url}" }]\n`
}

export const LOOPBACK = '[network]\nallow = ["127.0.0.1"]\n'

export function webhookId({ headers }: ReceivedCall): string {
  return String(headers['webhook-id'])
}

/** Which event a call is about: by default the body is the event. */
export function eventId({ body }: ReceivedCall): string {
  return (JSON.parse(body) as { id: string }).id
}

/** Ids of events that were told more than once, and every event goes by one webhook-id of its own. */
export function repeatedIn(calls: readonly ReceivedCall[]): {
  readonly repeated: string[]
  readonly mixedUp: string[]
} {
  const byEvent = new Map<string, string[]>()
  for (const call of calls) byEvent.set(eventId(call), [...(byEvent.get(eventId(call)) ?? []), webhookId(call)])
  const owners = new Set([...byEvent.values()].map(([first]) => first))
  const isMixedUp = (ids: readonly string[]) => new Set(ids).size > 1
  return {
    repeated: [...byEvent].filter(([, ids]) => ids.length > 1).map(([event]) => event),
    mixedUp: [
      ...[...byEvent].filter(([, ids]) => isMixedUp(ids)).map(([event]) => event),
      ...(owners.size === byEvent.size ? [] : ['an id that two events share']),
    ],
  }
}
