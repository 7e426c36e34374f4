/** Batches of 1,000 events: the library against a bare `unnest` insert into the same table. */
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, payload, perSecond, takeTurns, withLog } from '../measure.mjs'

const size = 1_000

export function run({ url, ms, rounds }) {
  return withLog(url, 'bench_batch', async (ac) => {
    const { clients, end } = await connect(url, 1)
    const rates = await takeTurns(
      {
        bare: () => clients[0].query(unnest, columns()),
        library: () => ac.emitNow(clients[0], events()),
      },
      { rounds, ms, writers: 1, per: size },
    )
    await end()
    return {
      title: `batch: ${size} events in one statement`,
      figures: [
        ['bare unnest into the log table', perSecond(rates.bare)],
        ['aftercommit emit([…])', perSecond(rates.library)],
      ],
      goals: [atLeast('library / bare unnest', rates.library / rates.bare, 0.9)],
    }
  })
}

const unnest = `insert into bench_batch.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
  select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::jsonb[], $7::timestamptz[])
  returning position`

function columns() {
  const ids = Array.from({ length: size }, () => uuidv7())
  return [
    ids,
    ids.map(() => 'order.placed'),
    ids.map(() => 'order'),
    ids,
    ids.map(() => JSON.stringify(payload)),
    ids.map((id) => JSON.stringify({ correlation_id: id })),
    ids.map(() => new Date().toISOString()),
  ]
}

function events() {
  return Array.from({ length: size }, () => ({
    type: 'order.placed',
    aggregate: { type: 'order', id: uuidv7() },
    payload,
  }))
}
