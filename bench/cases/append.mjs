/**
 * One event per transaction, 16 writers: the library through its own pool and through clients of the caller, emit() in SQL, a
 * bare insert into the same table, and a plain table. What applications send often is prepared, so the inserts are.
 */
import { uuidv7 } from 'uuidv7'
import { atLeast, later } from '../goals.mjs'
import { connect, insertText, insertValues, payload, perSecond, takeTurns, withLog } from '../measure.mjs'

const writers = 16
const schema = 'bench_append'

export function run({ url, ms, rounds }) {
  return withLog(
    url,
    schema,
    async (ac) => {
      const { clients, end } = await connect(url, writers)
      await clients[0].query(`create table ${schema}.plain (
        position bigserial primary key, id text not null unique, type text not null, aggregate_type text, aggregate_id text,
        payload jsonb, metadata jsonb not null, occurred_at timestamptz not null,
        recorded_at timestamptz not null default clock_timestamp())`)
      const insert = (table) => (n) =>
        clients[n].query({ name: table, text: insertText(`${schema}.${table}`), values: insertValues() })
      const event = () => ({ aggregate: { type: 'order', id: uuidv7() }, payload })
      const emit = { name: 'emit', text: `select ${schema}.emit('order.placed', 'order', $1, $2::jsonb)` }
      const rates = await takeTurns(
        {
          plain: insert('plain'),
          bare: insert('events'),
          pool: () => ac.emitNow('order.placed', event()),
          client: (n) => ac.emitNow(clients[n], 'order.placed', event()),
          sql: (n) => clients[n].query({ ...emit, values: [uuidv7(), JSON.stringify(payload)] }),
        },
        { rounds, ms, writers },
      )
      await end()
      return {
        title: `append: one event per transaction, ${writers} writers`,
        figures: [
          ['plain table (pk, unique id), prepared', perSecond(rates.plain)],
          ['bare pg into the log table, prepared', perSecond(rates.bare)],
          ['aftercommit emit, own pool', perSecond(rates.pool)],
          ['aftercommit emit, clients of the caller', perSecond(rates.client)],
          ['emit() in SQL, prepared', perSecond(rates.sql)],
        ],
        goals: [
          later(atLeast('library, own pool / bare pg, same table', rates.pool / rates.bare, 0.9)),
          later(atLeast('emit() in SQL / bare pg, same table', rates.sql / rates.bare, 0.8)),
          later(atLeast('library, own pool / plain table', rates.pool / rates.plain, 0.65)),
          atLeast('library, clients of the caller / bare pg, same table', rates.client / rates.bare, 0.7),
        ],
      }
    },
    { poolSize: writers },
  )
}
