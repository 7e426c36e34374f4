/** Instances on a database of their own, each a process as far as the database can tell; ended with the test. */
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { type Aftercommit, type AftercommitOptions, createAftercommit } from '../../../src/index.ts'
import { connect, type ServerKind, testDatabase, usualServer } from '../../support/database.ts'
import { collectingLogger } from '../../support/logger.ts'

export interface OpenWorkflows {
  readonly url: string
  readonly sql: pg.Client
  /** Another process; started by the test, where it wants one. */
  open(options?: AftercommitOptions): Aftercommit & { readonly lines: readonly string[] }
  rows(table: string, where?: string): Promise<number>
  /** How many wait for an advisory lock here. Whoever does so in another database of the server is another test's. */
  waiting(): Promise<number>
}

export async function openWorkflows({ major = usualServer() }: { major?: ServerKind } = {}): Promise<OpenWorkflows> {
  const { url } = await testDatabase({ major, migrated: true })
  const sql = await connect(url)
  return {
    url,
    sql,
    open(options = {}) {
      const { logger, lines } = collectingLogger()
      const ac = createAftercommit({ database: url, logger, ...options })
      onTestFinished(() => ac.stop())
      return Object.assign(ac, { lines })
    },
    rows: async (table, where = 'true') =>
      (await sql.query(`select from aftercommit.${table} where ${where}`)).rowCount ?? 0,
    waiting: async () =>
      (
        await sql.query(
          `select from pg_locks where locktype = 'advisory' and not granted
              and database = (select oid from pg_database where datname = current_database())`,
        )
      ).rowCount ?? 0,
  }
}
