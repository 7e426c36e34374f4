/** One event per transaction, 16 writers: the library, a bare insert into the same table, and a plain table. */
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, insertText, insertValues, payload, perSecond, takeTurns, withLog } from '../measure.mjs'

const writers = 16

export function run({ url, ms, rounds }) {
  return withLog(url, 'bench_append', async (ac) => {
    const { clients, end } = await connect(url, writers)
    await clients[0].query(`create table bench_append.plain (
      position bigserial primary key, id text not null unique, type text not null, aggregate_type text, aggregate_id text,
      payload jsonb, metadata jsonb not null, occurred_at timestamptz not null,
      recorded_at timestamptz not null default clock_timestamp())`)
    const rates = await takeTurns(
      {
        plain: (n) => clients[n].query(insertText('bench_append.plain'), insertValues()),
        bare: (n) => clients[n].query(insertText('bench_append.events'), insertValues()),
        library: (n) => ac.emitNow(clients[n], 'order.placed', { aggregate: { type: 'order', id: uuidv7() }, payload }),
      },
      { rounds, ms, writers },
    )
    await end()
    return {
      title: `append: one event per transaction, ${writers} writers`,
      figures: [
        ['plain table (pk, unique id)', perSecond(rates.plain)],
        ['bare pg into the log table', perSecond(rates.bare)],
        ['aftercommit emit', perSecond(rates.library)],
      ],
      goals: [
        atLeast('library / bare pg, same table', rates.library / rates.bare, 0.9),
        atLeast('log table with bell / plain table', rates.bare / rates.plain, 0.7),
      ],
    }
  })
}
