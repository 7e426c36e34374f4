/** Writers above READ COMMITTED: their snapshots are old, their locks are not. */
import { describe, expect, test } from 'vitest'
import { expectAllRead, expectStored } from '../support/ledger.ts'
import { LOGS, play, readMetric, standsAtHole } from '../support/play.ts'

const levels = ['repeatable read', 'serializable'] as const
const games = LOGS.flatMap((log) => levels.map((level) => ({ ...log, level })))

describe.each(games)('writers at $level on Postgres $major, wake $wake', ({ level, ...where }) => {
  test('are waited for and read by their position, whatever their snapshot shows', async () => {
    const game = await play(where)
    const [early, late] = [await game.openWriter(), await game.openWriter()]
    await early.begin(level)
    await early.sql.query('select count(*) from aftercommit.events')
    await game.append()
    await early.emit()
    await late.begin(level)
    await late.emit()
    await late.commit()
    await standsAtHole(game)
    await early.commit()
    await game.append()
    await expectAllRead(game.reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })

  test('that roll back leave a hole that is passed', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await writer.begin(level)
    await writer.emit()
    await game.append()
    await standsAtHole(game)
    await writer.rollback()
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, 'aftercommit_log_holes_total')).toBe(1)
  })
})

describe.each(LOGS)('a serialization failure on Postgres $major, wake $wake', (where) => {
  test('at COMMIT leaves no event and a hole that is passed', async () => {
    const game = await play(where)
    await game.sql.query(
      'create table doctors (name text primary key, on_call boolean); insert into doctors values ($$a$$, true), ($$b$$, true)',
    )
    const [first, second] = [await game.openWriter(), await game.openWriter()]
    // Each sees that the other is on call and goes home: no order of the two explains both.
    for (const [writer, name] of [
      [first, 'a'],
      [second, 'b'],
    ] as const) {
      await writer.begin('serializable')
      await writer.sql.query('select count(*) from doctors where on_call')
      await writer.sql.query('update doctors set on_call = false where name = $1', [name])
    }
    await second.emit()
    await first.emit()
    await first.commit()
    await expect(second.commit()).rejects.toMatchObject({ code: '40001' })
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, 'aftercommit_log_holes_total')).toBe(1)
    await expectStored(game.sql, game.ledger)
  })
})
