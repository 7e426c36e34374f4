/** An open transaction delays readers and is never skipped; transactions that emit nothing delay nobody. */
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { follow, instance } from '../log/support/open-log.ts'
import { connect, serverUrl } from '../support/database.ts'
import { expectAllRead, readBy } from './support/ledger.ts'
import { keepAppending, LOGS, play, readMetric, standsAtHole } from './support/play.ts'

/** What other sessions may be doing for hours. None of it has taken a position. */
const bystanders: Record<string, (sql: pg.Client, major: number) => Promise<unknown>> = {
  'sits idle in a transaction that has only read': (sql) => sql.query('begin; select count(*) from aftercommit.events'),
  'holds advisory locks': (sql) => sql.query('begin; select pg_advisory_lock(1), pg_advisory_xact_lock(2)'),
  'writes other tables in an old transaction': (sql) =>
    sql.query('begin; create table notes (id integer); insert into notes values (1)'),
  'reads with an old snapshot, as pg_dump does': (sql, major) =>
    sql.query(`
      begin isolation level repeatable read read only;
      lock table aftercommit.events in access share mode;
      select ${major >= 18 ? `pg_get_sequence_data('aftercommit.positions')` : 'last_value from aftercommit.positions'};
      select count(*) from aftercommit.events`),
}

describe.each(LOGS)('a long transaction on Postgres $major, wake $wake', (where) => {
  test.each(['commit', 'rollback'] as const)(
    'that took the first of hundreds of positions is waited for until its %s',
    async (end) => {
      const game = await play(where)
      const long = await game.openWriter()
      await long.sql.query(`set application_name = 'long one'`)
      await long.begin()
      await long.emit()
      const others = await keepAppending(game, 4)
      await others.more(200)
      await standsAtHole(game)
      // Somebody who starts meanwhile waits as well, without having seen the hole come into being.
      const second = instance({ database: game.url })
      const newcomer = follow(second.log)
      await standsAtHole({ ac: second })
      await others.more(200)
      await others.stop()
      await newcomer.sees(game.ledger.written[0]!.id)
      for (const reader of [game.reader, newcomer]) expect(readBy(reader)).toHaveLength(1)
      const { holders, frontier } = await game.ac.log.status()
      expect(holders).toMatchObject([{ application: 'long one', state: 'idle in transaction' }])
      expect(frontier).toBe(1n)

      await long[end]()
      for (const reader of [game.reader, newcomer]) await expectAllRead(reader, game.ledger)
      const read = game.reader.positions
      expect(read.slice(0, 3)).toEqual(end === 'commit' ? [1n, 2n, 3n] : [1n, 3n, 4n])
    },
  )

  test.each(Object.keys(bystanders))('that has taken no position delays nobody: it %s', async (doing) => {
    const game = await play(where)
    const bystander = await connect(game.url)
    const { rows } = await bystander.query('select pg_backend_pid() as pid')
    await bystanders[doing]!(bystander, where.major)
    const dead = await game.openWriter()
    await dead.begin()
    await dead.emit()
    await game.append()
    await standsAtHole(game)
    await dead.rollback()
    await game.append()
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, 'aftercommit_log_holes_total')).toBe(1)
    const still = await game.sql.query('select state from pg_stat_activity where pid = $1', [rows[0].pid])
    expect(still.rows).toEqual([{ state: 'idle in transaction' }])
  })

  test('that appends to another log of the same server delays nobody here', async () => {
    const [game, other] = [await play(where), await play(where)]
    const elsewhere = await other.openWriter()
    await elsewhere.begin()
    await elsewhere.emit()
    const dead = await game.openWriter()
    await dead.begin()
    await dead.emit()
    await game.append()
    await standsAtHole(game)
    await dead.rollback()
    await expectAllRead(game.reader, game.ledger)
    await elsewhere.commit()
    await expectAllRead(other.reader, other.ledger)
  })

  test('that writes in another database of the server delays nobody', async () => {
    const game = await play(where)
    const elsewhere = await connect(serverUrl(where.major))
    await elsewhere.query('begin; select pg_current_xact_id()')
    const dead = await game.openWriter()
    await dead.begin()
    await dead.emit()
    await game.append()
    await standsAtHole(game)
    await dead.rollback()
    await expectAllRead(game.reader, game.ledger)
    await elsewhere.query('rollback')
  })
})
