import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Ledger } from './ledger.ts'
import type { Writer } from './play.ts'

export interface Prepared {
  readonly gid: string
  commit(sql: pg.Client): Promise<void>
  rollback(sql: pg.Client): Promise<void>
}

/**
 * The first phase. Nobody may have been rung: NOTIFY forbids PREPARE TRANSACTION, hence the bell is off. What a failed
 * test leaves prepared would outlive its sessions and keep its database from being dropped, so it is rolled back.
 */
export async function prepare(writer: Writer, url: string, ledger: Ledger): Promise<Prepared> {
  const gid = randomUUID()
  const pending = [...writer.pending]
  await writer.sql.query(`prepare transaction '${gid}'`)
  onTestFinished(async () => {
    const client = new pg.Client(url)
    await client.connect()
    await client.query(`rollback prepared '${gid}'`).catch(() => undefined)
    await client.end()
  })
  return {
    gid,
    async commit(sql) {
      await sql.query(`commit prepared '${gid}'`)
      ledger.enter(pending)
    },
    async rollback(sql) {
      await sql.query(`rollback prepared '${gid}'`)
    },
  }
}

/** Begins a transaction that may be prepared. */
export async function beginSilently(writer: Writer): Promise<void> {
  await writer.begin()
  await writer.sql.query(`set local aftercommit.bell = 'off'`)
}
