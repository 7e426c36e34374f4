/** What the games about order are played with: a log, its ledger, a reader, and writers that are stepped by hand. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Follower, follow, type OpenLog, openLog } from '../../log/support/open-log.ts'
import { connect } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { createLedger, type Ledger, type Written } from './ledger.ts'

/** The newest and the oldest server, and a log whose readers are never rung: order does not depend on the bell. */
export const LOGS = [
  { major: 18, wake: 'doorbell' },
  { major: 14, wake: 'doorbell' },
  { major: 18, wake: 'poll' },
] as const

export interface Play extends OpenLog {
  readonly ledger: Ledger
  readonly reader: Follower
  openWriter(): Promise<Writer>
  /** Commits one event in a transaction of its own. */
  append(): Promise<Written>
}

export async function play({ major, wake }: (typeof LOGS)[number]): Promise<Play> {
  const log = await openLog({ major, log: { wake } })
  const ledger = createLedger()
  const reader = follow(log.ac.log)
  const openWriter = async () => createWriter(log, await connect(log.url), ledger)
  const appender = await openWriter()
  const append = async () => {
    await appender.begin()
    const written = await appender.emit()
    await appender.commit()
    return written
  }
  // A reader that stands at the head before the game begins, rather than one that starts somewhere within it.
  await reader.sees((await append()).id)
  return { ...log, ledger, reader, openWriter, append }
}

/** One session. What it emitted is entered into the ledger when its COMMIT was answered. */
export interface Writer {
  readonly sql: pg.Client
  /** Emitted in the transaction that is open. */
  readonly pending: readonly Written[]
  begin(isolation?: 'read committed' | 'repeatable read' | 'serializable'): Promise<void>
  emit(): Promise<Written>
  savepoint(): Promise<void>
  rollbackToSavepoint(): Promise<void>
  commit(): Promise<void>
  rollback(): Promise<void>
}

export function createWriter({ ac }: Pick<OpenLog, 'ac'>, sql: pg.Client, ledger: Ledger): Writer {
  let pending: Written[] = []
  let saved = 0
  return {
    sql,
    get pending() {
      return pending
    },
    async begin(isolation = 'read committed') {
      pending = []
      await sql.query(`begin isolation level ${isolation}`)
    },
    async emit() {
      // With an id of its own an event takes another way into the log.
      const more = pending.length % 3 === 2 ? { id: randomUUID() } : {}
      const written = await ac.emit(sql, 'game.played', { payload: {}, ...more })
      pending.push(written)
      return written
    },
    async savepoint() {
      saved = pending.length
      await sql.query('savepoint here')
    },
    async rollbackToSavepoint() {
      pending.length = saved
      await sql.query('rollback to savepoint here')
    },
    async commit() {
      await sql.query('commit')
      ledger.enter(pending)
    },
    async rollback() {
      await sql.query('rollback')
    },
  }
}

/** Resolves when the reader of this instance has met a missing number and waits in front of it. */
export async function standsAtHole({ ac }: Pick<OpenLog, 'ac'>): Promise<void> {
  await eventually(async () => (await readMetric(ac, 'aftercommit_frontier_age_seconds')) > 0)
}

export async function readMetric(ac: OpenLog['ac'], name: string): Promise<number> {
  const line = (await ac.metrics()).split('\n').find((text) => text.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}

/** Sessions that commit one short transaction after the other until they are told to stop. */
export async function keepAppending(game: Play, sessions: number) {
  let stopping = false
  let committed = 0
  const writers = await Promise.all(Array.from({ length: sessions }, () => game.openWriter()))
  const loops = writers.map(async (writer) => {
    while (!stopping) {
      await writer.begin()
      await writer.emit()
      await writer.commit()
      committed++
    }
  })
  return {
    /** Resolves when this many more have committed. */
    async more(count: number): Promise<void> {
      const enough = committed + count
      await eventually(() => committed >= enough, { deadline: 60_000 })
    },
    async stop(): Promise<void> {
      stopping = true
      await Promise.all(loops)
    },
  }
}
