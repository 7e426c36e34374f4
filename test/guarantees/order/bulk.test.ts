/** The owner of the schema may write past our functions. Nobody gets a position without the lock, so order holds. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { addressOf } from '../../support/proxy.ts'
import { expectAllRead, expectStored, type Written } from '../support/ledger.ts'
import { LOGS, play, standsAtHole } from '../support/play.ts'

const ROWS = 100_000
const columns = '(id, type, payload, metadata, occurred_at)'

describe.each(LOGS)('bulk writes on Postgres $major, wake $wake', (where) => {
  test('by COPY and by INSERT … SELECT at the same time are read once each, in the order of their positions', async () => {
    const game = await play(where)
    const [early, inserter] = [await game.openWriter(), await game.openWriter()]
    await early.begin()
    await early.emit()
    await Promise.all([copyIn(game.url, ROWS), insertSelected()])
    await standsAtHole(game)
    await early.commit()
    await game.reader.sees((await game.append()).id, 60_000)

    // The ledger cannot know the positions that COPY took, but it knows every id and the order within COPY.
    const { positions, ids } = game.reader
    expect(positions.every((position, i) => i === 0 || position > positions[i - 1]!)).toBe(true)
    const copied = ids.filter((id) => id.startsWith('copied-'))
    expect(copied).toEqual(Array.from({ length: ROWS }, (_, i) => `copied-${i}`))
    const others = game.reader.events.filter(({ id }) => !id.startsWith('copied-'))
    expect(others.map(({ id, position }) => ({ id, position }))).toEqual(game.ledger.written)

    async function insertSelected(): Promise<void> {
      const { rows } = await inserter.sql.query(
        `insert into aftercommit.events ${columns}
         select 'selected-' || n, 'game.played', '{}', '{}', now() from generate_series(1, ${ROWS}) n
         returning id, position`,
      )
      game.ledger.enter(rows.map(({ id, position }) => ({ id, position: BigInt(position) })))
    }
  })

  test('by triggers of tables are read in order, those of an open transaction first', async () => {
    const game = await play(where)
    await game.sql.query(`
      create table items (id integer primary key);
      create function tell() returns trigger language plpgsql as $$
      begin
        perform aftercommit.emit('item.added', 'item', new.id::text, to_jsonb(new));
        return null;
      end $$;
      create trigger tell after insert on items for each row execute function tell()`)
    const early = await game.openWriter()
    await early.begin()
    await early.sql.query('insert into items select generate_series(1, 500)')
    await game.sql.query('insert into items select generate_series(501, 1000)')
    await standsAtHole(game)
    await early.commit()
    await game.reader.sees((await game.append()).id)
    const added = game.reader.events.filter(({ type }) => type === 'item.added')
    expect(added.map(({ aggregateId }) => Number(aggregateId))).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1))
  })

  test('with triggers switched off are read in order, as those of a replication are', async () => {
    const game = await play(where)
    const [early, late] = [await game.openWriter(), await game.openWriter()]
    const written: Written[] = []
    for (const writer of [early, late]) {
      await writer.sql.query('set session_replication_role = replica')
      await writer.begin()
      const { rows } = await writer.sql.query(
        `insert into aftercommit.events ${columns} values (aftercommit.new_id(), 'game.played', '{}', '{}', now())
         returning id, position`,
      )
      written.push({ id: rows[0].id, position: BigInt(rows[0].position) })
    }
    await late.commit()
    await standsAtHole(game)
    await early.commit()
    game.ledger.enter(written)
    await expectAllRead(game.reader, game.ledger)
    await expectStored(game.sql, game.ledger)
  })
})

async function copyIn(url: string, rows: number): Promise<void> {
  const { host, port, user, password, database } = addressOf(url)
  const login = { ...(user && { user }), ...(password && { password }), ...(database && { database }) }
  const sql = postgres({ host, port, ...login, max: 1 })
  onTestFinished(() => sql.end())
  const target = await sql.unsafe(`copy aftercommit.events ${columns} from stdin`).writable()
  const lines = function* () {
    for (let i = 0; i < rows; i++) yield `copied-${i}\tgame.played\t{}\t{}\t2026-01-01T00:00:00Z\n`
  }
  await pipeline(Readable.from(lines()), target)
}
