/** A role that can connect and nothing else keeps locks. It must not keep readers from what others emit. */
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../support/database.ts'
import { expectAllRead } from '../support/ledger.ts'
import { LOGS, play, standsAtHole } from '../support/play.ts'

describe.each(LOGS)('a role that may only connect, on Postgres $major, wake $wake', (where) => {
  test('holds nobody back with the lock of the sequence, taken in any way it has', async () => {
    const game = await play(where)
    const stranger = await openStranger(game)
    const { rows } = await game.sql.query(`select 'aftercommit.positions'::regclass::oid::text as sequence`)
    const { sequence } = rows[0]
    await stranger.query('begin')
    await stranger.query('savepoint here')
    await expect(stranger.query(`select nextval(${sequence})`)).rejects.toThrow('permission denied')
    await stranger.query('rollback to savepoint here')
    await stranger
      .query(`select pg_sequence_last_value(${sequence})`)
      .catch(() => stranger.query('rollback to savepoint here'))
    const { rows: locks } = await game.sql.query(
      `select from pg_locks where relation = ${sequence} and mode = 'RowExclusiveLock' and granted`,
    )
    expect(locks.length).toBeGreaterThan(0)

    const dead = await game.openWriter()
    await dead.begin()
    await dead.emit()
    await game.append()
    await standsAtHole(game)
    await dead.rollback()
    await expectAllRead(game.reader, game.ledger)
    expect((await game.ac.log.status()).holders).toEqual([])
    await stranger.query('rollback')
  })

  test('no partition takes numbers past the lock of events, also one that is made later', async () => {
    const game = await play(where)
    await game.sql.query(`update aftercommit.settings set partition_size = 100`)
    await game.sql.query(`select setval('aftercommit.positions', 2000000)`)
    await game.ac.upkeep()
    const { rows } = await game.sql.query(
      `select inhrelid::regclass::text as partition from pg_inherits where inhparent = 'aftercommit.events'::regclass`,
    )
    expect(rows.length).toBeGreaterThan(3)
    for (const { partition } of rows) {
      const insert = `insert into ${partition} (id, type, metadata, occurred_at) values ('x', 'game.played', '{}', now())`
      await expect(game.sql.query(insert), partition).rejects.toMatchObject({ code: '23502' })
    }
  })
})

async function openStranger({ sql, url }: { sql: { query(text: string): Promise<unknown> }; url: string }) {
  const role = `ac_stranger_${randomBytes(4).toString('hex')}`
  await sql.query(`create role ${role} login password '${role}'`)
  onTestFinished(async () => void (await sql.query(`drop role ${role}`).catch(() => {})))
  return connect(url.replace(/\/\/[^/@]*@/, `//${role}:${role}@`))
}
