/** A hole costs one look, however many numbers it has. */
import { describe, expect, test } from 'vitest'
import { follow, instance } from '../../log/support/open-log.ts'
import { eventually } from '../../support/eventually.ts'
import { expectAllRead } from '../support/ledger.ts'
import { LOGS, play, readMetric, standsAtHole } from '../support/play.ts'

const HOLE = 5_000_000

describe.each(LOGS)('a hole on Postgres $major, wake $wake', (where) => {
  test('of five million numbers is passed in one step, with flat memory, and counted once', async () => {
    const game = await play(where)
    const dead = await game.openWriter()
    await dead.begin()
    await dead.sql.query('lock table only aftercommit.events in row exclusive mode')
    await dead.sql.query(`select count(nextval('aftercommit.positions')) from generate_series(1, ${HOLE})`)
    await game.append()
    await standsAtHole(game)
    const heapBefore = process.memoryUsage().heapUsed
    await dead.rollback()

    const frontiers = new Set<bigint>()
    while (game.reader.events.length < 2) frontiers.add((await game.ac.log.status()).frontier)
    await expectAllRead(game.reader, game.ledger)
    frontiers.add((await game.ac.log.status()).frontier)
    const last = BigInt(HOLE) + 2n
    expect([...frontiers].filter((frontier) => frontier !== 1n)).toEqual([last])
    expect(await readMetric(game.ac, 'aftercommit_log_holes_total')).toBe(HOLE)
    // A single word for each number would take 40 MB.
    expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(HOLE * 6)
  })

  test('that was settled once holds up nobody who starts later, not even while somebody else appends', async () => {
    const game = await play(where)
    const dead = await game.openWriter()
    await dead.begin()
    await dead.emit()
    await dead.rollback()
    const { position } = await game.append()
    await expectAllRead(game.reader, game.ledger)
    await eventually(async () => {
      const { rows } = await game.sql.query('select frontier from aftercommit.log_state')
      return BigInt(rows[0].frontier) === position
    })
    const open = await game.openWriter()
    await open.begin()
    await open.emit()
    const newcomer = follow(instance({ database: game.url }).log)
    await expectAllRead(newcomer, game.ledger)
    await open.commit()
    await expectAllRead(newcomer, game.ledger)
  })
})
