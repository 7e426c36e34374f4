/** An event exists if and only if its transaction committed. */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { createProxy } from '../support/proxy.ts'
import { expectAllRead, expectStored } from './support/ledger.ts'
import { LOGS, play, readMetric, standsAtHole } from './support/play.ts'

const holes = 'aftercommit_log_holes_total'

describe.each(LOGS)('commit on Postgres $major, wake $wake', (where) => {
  test('a process killed after emit and before COMMIT leaves no event, and readers pass its position', async () => {
    const game = await play(where)
    const program = spawnScript(fileURLToPath(new URL('support/emit-and-hang.mjs', import.meta.url)), [game.url])
    await program.waitForLine(/^emitted 2$/)
    await game.append()
    await standsAtHole(game)
    program.kill('SIGKILL')
    await program.exited
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, holes)).toBe(1)
    await expectStored(game.sql, game.ledger)
  })

  test('a COMMIT whose answer is lost is told as unknown, and repeating it with the same id leaves one event', async () => {
    const game = await play(where)
    const proxy = await createProxy(game.url)
    const cutOff = instance({ database: proxy.url })
    const emitChosen = () => cutOff.transaction((tx) => tx.emit('game.played', { payload: {}, id: 'chosen-1' }))
    await cutOff.transaction(async () => {})
    proxy.cutOnCommit()
    await expect(emitChosen()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    proxy.pass()
    const written = await emitChosen()
    game.ledger.enter([written])
    await game.append()
    await expectAllRead(game.reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })

  test('ten events rolled back among others are never read, the others are, and ten holes are counted', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await writer.begin()
    for (let i = 0; i < 10; i++) {
      await writer.emit()
      if (i % 3 === 0) await game.append()
    }
    await standsAtHole(game)
    await writer.rollback()
    await game.append()
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, holes)).toBe(10)
    await expectStored(game.sql, game.ledger)
  })

  test('what was emitted inside a savepoint that was undone is not read, what came before and after is', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await writer.begin()
    await writer.emit()
    await writer.savepoint()
    await writer.emit()
    await writer.emit()
    await writer.rollbackToSavepoint()
    await game.append()
    await standsAtHole(game)
    await writer.emit()
    await writer.commit()
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, holes)).toBe(2)
  })

  test('our own transactions undo savepoints in the same way', async () => {
    const game = await play(where)
    const emit = { payload: {} }
    const written = await game.ac.transaction(async (tx) => {
      const before = await tx.emit('game.played', emit)
      const undone = tx.savepoint(async () => {
        await tx.emit('game.played', emit)
        throw new Error('undo')
      })
      await expect(undone).rejects.toThrow('undo')
      return [before, await tx.emit('game.played', emit)]
    })
    game.ledger.enter(written)
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, holes)).toBe(1)
  })

  test('what was emitted in a block of PL/pgSQL that failed is not read, what its handler emitted is', async () => {
    const game = await play(where)
    await game.sql.query(`
      do $$
      begin
        perform aftercommit.emit('block.failed', null, null, '{}');
        raise exception 'undo';
      exception when others then
        perform aftercommit.emit('block.handled', null, null, '{}');
      end $$`)
    await game.append()
    await eventually(() => game.reader.events.length >= 3)
    expect(game.reader.events.map(({ type }) => type)).toEqual(['game.played', 'block.handled', 'game.played'])
  })

  test('a position that was taken by hand inside a savepoint, under the lock of events, and used after it was undone is waited for', async () => {
    const game = await play(where)
    const writer = await game.openWriter()
    await writer.begin()
    await writer.sql.query('lock table only aftercommit.events in row exclusive mode')
    await writer.savepoint()
    const { rows } = await writer.sql.query(`select nextval('aftercommit.positions') as position`)
    await writer.rollbackToSavepoint()
    await game.append()
    await standsAtHole(game)
    const written = { id: 'carried-out', position: BigInt(rows[0].position) }
    await writer.sql.query(
      `insert into aftercommit.events (position, id, type, metadata, occurred_at) values ($1, $2, 'game.played', '{}', now())`,
      [written.position, written.id],
    )
    await writer.commit()
    game.ledger.enter([written])
    await expectAllRead(game.reader, game.ledger)
  })

  test('a transaction that fails at COMMIT leaves no event', async () => {
    const game = await play(where)
    await game.sql.query(`
      create table parent (id integer primary key);
      create table child (parent integer references parent deferrable initially deferred)`)
    const failing = game.ac.transaction(async (tx) => {
      await tx.emit('game.played', { payload: {} })
      await tx.query('insert into child values (1)')
    })
    await expect(failing).rejects.toMatchObject({ code: '23503' })
    await game.append()
    await expectAllRead(game.reader, game.ledger)
    expect(await readMetric(game.ac, holes)).toBe(1)
    await expectStored(game.sql, game.ledger)
  })
})
