/** A reader sees every committed event once, in position order. The details are played in order/. */
import { describe, expect, test } from 'vitest'
import { follow, instance } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { expectAllRead, expectStored, readBy } from './support/ledger.ts'
import { runLoad } from './support/load.ts'
import { keepAppending, LOGS, play, readMetric, standsAtHole } from './support/play.ts'

/** `npm run chaos` asks for more. */
const LOAD_FACTOR = Number(process.env.AFTERCOMMIT_LOAD_FACTOR ?? 1)

describe.each(LOGS)('order on Postgres $major, wake $wake', (where) => {
  test('an event that is committed after a later one is read before it', async () => {
    const game = await play(where)
    const [early, late] = [await game.openWriter(), await game.openWriter()]
    await early.begin()
    await early.emit()
    await late.begin()
    await late.emit()
    await late.commit()
    await standsAtHole(game)
    await early.commit()
    await expectAllRead(game.reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })

  test('a position that was rolled back is passed although at every moment some appender is open', async () => {
    const game = await play(where)
    const [dead, first, second, third] = await Promise.all([1, 2, 3, 4].map(() => game.openWriter()))
    await dead!.begin()
    await dead!.emit()
    await first!.begin()
    await first!.emit()
    await dead!.rollback()
    await second!.begin()
    await second!.emit()
    await first!.commit()
    await standsAtHole(game)
    await third!.begin()
    await third!.emit()
    await second!.commit()
    await expectAllRead(game.reader, game.ledger)
    await third!.commit()
    await expectAllRead(game.reader, game.ledger)
  })

  test('positions that are rolled back while others go on appending are passed while they do', async () => {
    const game = await play(where)
    const others = await keepAppending(game, 4)
    const dead = await game.openWriter()
    for (let round = 1; round <= 10; round++) {
      await dead.begin()
      await dead.emit()
      await others.more(10)
      await dead.rollback()
    }
    await eventually(async () => (await readMetric(game.ac, 'aftercommit_log_holes_total')) === 10)
    await others.stop()
    await expectAllRead(game.reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })

  test('a transaction that has had its transaction id for long is read by its position', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await writer.begin()
    await writer.sql.query('select pg_current_xact_id()')
    await game.append()
    await game.append()
    const written = await writer.emit()
    await game.append()
    await standsAtHole(game)
    await writer.commit()
    await expectAllRead(game.reader, game.ledger)
    expect(readBy(game.reader)[3]).toEqual({ id: written.id, position: written.position })
  })

  test('inside a stream the order of versions is the order of positions, also for one that waited for its turn', async () => {
    const game = await play(where)
    await game.sql.query(`select aftercommit.declare_stream('order')`)
    const [first, waiting] = [await game.openWriter(), await game.openWriter()]
    const change = { aggregate: { type: 'order', id: '7' }, payload: {} }
    await waiting.begin()
    await waiting.sql.query('select pg_current_xact_id()')
    await first.begin()
    const one = await game.ac.emit(first.sql, 'order.changed', change)
    const two = game.ac.emit(waiting.sql, 'order.changed', change)
    await eventually(async () => {
      const { rowCount } = await game.sql.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rowCount === 1
    })
    await game.append()
    await first.commit()
    game.ledger.enter([one])
    await game.append()
    const changed = await two
    await waiting.commit()
    game.ledger.enter([changed])
    await expectAllRead(game.reader, game.ledger)
    expect(changed.position).toBeGreaterThan(one.position)
    const versions = game.reader.events.filter(({ type }) => type === 'order.changed').map(({ version }) => version)
    expect(versions).toEqual([1, 2])
  })

  test('four readers of 24 writers that commit, roll back, prepare and undo savepoints agree with what was committed', async () => {
    const game = await play(where)
    const others = [1, 2].map(() => follow(instance({ database: game.url }).log))
    const inTheMiddle = instance({ database: game.url })
    const rolledBack = await runLoad(game, {
      writers: 24,
      transactionsEach: (where.major === 18 && where.wake === 'doorbell' ? 200 : 100) * LOAD_FACTOR,
      halfway: () => others.push(follow(inTheMiddle.log)),
    })
    await game.append()
    expect(rolledBack).toBeGreaterThan(0)
    expect(others).toHaveLength(3)
    await expectStored(game.sql, game.ledger)
    for (const reader of [game.reader, ...others]) await expectAllRead(reader, game.ledger)
  })
})
