/** Prepared transactions have no session, and outlive the server. They are waited for like any other. */
import { describe, expect, test } from 'vitest'
import { createFrontier } from '../../../src/log/frontier.ts'
import { findLogObjects, observe } from '../../../src/log/frontier-statements.ts'
import { follow, instance } from '../../log/support/open-log.ts'
import { ownServer } from '../../log/support/own-server.ts'
import { connect, openDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { createLedger, expectAllRead, expectStored, readBy } from '../support/ledger.ts'
import { createWriter, LOGS, play, readMetric, standsAtHole } from '../support/play.ts'
import { beginSilently, prepare } from '../support/two-phase.ts'

describe.each(LOGS)('a prepared transaction on Postgres $major, wake $wake', (where) => {
  test('is waited for after its session is gone, and read by its position when it commits', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await beginSilently(writer)
    await writer.emit()
    const prepared = await prepare(writer, game.url, game.ledger)
    await writer.sql.end()
    await game.append()
    await standsAtHole(game)
    const newcomer = instance({ database: game.url })
    const second = follow(newcomer.log)
    await standsAtHole({ ac: newcomer })
    await second.sees(game.ledger.written[0]!.id)
    expect((await game.ac.log.status()).holders).toMatchObject([{ pid: null, preparedGid: prepared.gid }])
    for (const reader of [game.reader, second]) expect(readBy(reader)).toHaveLength(1)

    await prepared.commit(game.sql)
    for (const reader of [game.reader, second]) await expectAllRead(reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })

  test('that is rolled back leaves a hole that is passed', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await beginSilently(writer)
    await writer.emit()
    const prepared = await prepare(writer, game.url, game.ledger)
    await game.append()
    await standsAtHole(game)
    await prepared.rollback(game.sql)
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, 'aftercommit_log_holes_total')).toBe(1)
  })
})

describe.each([18, 14] as const)('two-phase commit on Postgres %i', (major) => {
  test('is refused by the server when a reader was rung, and leaves no event', async () => {
    const game = await play({ major, wake: 'doorbell' })
    await eventually(async () => (await game.sql.query('select from aftercommit.idle_marks')).rowCount === 1)
    const writer = await game.openWriter()
    await writer.begin()
    await writer.emit()
    await expect(prepare(writer, game.url, game.ledger)).rejects.toThrow(/NOTIFY/)
    await writer.rollback()
    await game.append()
    await expectAllRead(game.reader, game.ledger)
  })

  test('outlives a restart of the server: what is prepared is waited for, whichever way it ends', async () => {
    const server = await ownServer({ major, settings: { max_prepared_transactions: '5' } })
    const ac = instance({ database: server.url })
    await ac.migrate()
    const ledger = createLedger()
    const reader = follow(ac.log)
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(async () => createWriter({ ac }, await connect(server.url), ledger)),
    )
    const ends = { commits: await prepareOne(first!), rollsBack: await prepareOne(second!) }
    await third!.begin()
    await third!.emit()
    await third!.commit()
    await standsAtHole({ ac })
    await server.stop()
    await server.start()

    const sql = await connect(server.url)
    await standsAtHole({ ac })
    expect(readBy(reader)).toEqual([])
    await ends.rollsBack.rollback(sql)
    await ends.commits.commit(sql)
    await expectAllRead(reader, ledger)
    await expectStored(sql, ledger)
    expect(reader.positions).toEqual([1n, 3n])
    await ac.stop()

    async function prepareOne(writer: typeof first & object) {
      await beginSilently(writer)
      await writer.emit()
      return prepare(writer, server.url, ledger)
    }
  })

  test('outlives a restart that the reader, behind a pooler, did not notice', async () => {
    const server = await ownServer({ major, settings: { max_prepared_transactions: '5' } })
    const ac = instance({ database: server.url })
    await ac.migrate()
    const ledger = createLedger()
    const [first, second] = await Promise.all(
      [1, 2].map(async () => createWriter({ ac }, await connect(server.url), ledger)),
    )
    await beginSilently(first!)
    await first!.emit()
    const prepared = await prepare(first!, server.url, ledger)
    await second!.begin()
    await second!.emit()
    await second!.commit()

    // The frontier is not told to forget anything, as it would be after a lost connection.
    const frontier = createFrontier(0n)
    const look = async (nowMs: number) => {
      const db = openDatabase({ database: server.url })
      const observation = await observe(db, await findLogObjects(db))
      await db.close()
      return { moved: frontier.observe(observation, nowMs), holders: observation.holders }
    }
    const before = await look(0)
    await server.stop()
    await server.start()
    const after = await look(10)
    expect(before.holders).toHaveLength(1)
    expect(after.holders).toHaveLength(1)
    expect(after.holders).not.toEqual(before.holders)
    expect([before.moved, after.moved]).toEqual([false, false])
    await prepared.commit(await connect(server.url))
    expect((await look(20)).moved).toBe(true)
    expect(frontier.position).toBe(2n)
    await ac.stop()
  })
})
